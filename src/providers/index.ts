import type { ApiClient } from '../api/api-client.js';
import { fieldsOf, profileFrom, textOf } from './service-profile.js';
import type { IdentifyingProvider } from './services.js';

export { type CrowdinInstallation, crowdinAgent, crowdinApp } from './crowdin-apps.js';
export { type CrowdinHttpClient, crowdinHttpClient } from './crowdin-http-client.js';
export type { ServiceProfile } from './service-profile.js';
export {
  atlassian,
  box,
  calendly,
  discord,
  djangoOauthToolkit,
  doorkeeper,
  fitbit,
  github,
  gitlab,
  google,
  hubspot,
  type IdentifyingProvider,
  keycloak,
  linear,
  linkedin,
  microsoft,
  miro,
  type Provider,
  quickbooks,
  type SelfHostedProvider,
  salesforce,
  spotify,
  strava,
  twitch,
  xero,
  zoom,
} from './services.js';

export { shopify, type TenantProvider, zendesk } from './tenant-services.js';

/** A page of a list of Crowdin's API. @see https://support.crowdin.com/developer/api/v2/ */
export interface CrowdinList<T> {
  readonly data: readonly CrowdinItem<T>[];
  readonly pagination: { readonly offset: number; readonly limit: number };
}

/** One resource of Crowdin's API. */
export interface CrowdinItem<T> {
  readonly data: T;
}

/**
 * A project of Crowdin's `GET /projects`: the fields that its file-based and string-based, plain and enterprise APIs have
 * in common.
 *
 * @see https://support.crowdin.com/developer/api/v2/#tag/Projects
 */
export interface CrowdinProject {
  readonly id: number;
  readonly userId: number;
  readonly name: string;
  readonly identifier: string;
  readonly description: string | null;
  readonly sourceLanguageId: string;
  readonly targetLanguageIds: readonly string[];
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; `null` before the first change. */
  readonly updatedAt: string | null;
}

/** The part of a profile that {@link crowdin} adds, in the terms of Passport's profiles. */
export interface CrowdinProfile {
  readonly id?: string;
  readonly username?: string;
  readonly displayName?: string;
  readonly emails?: readonly { readonly value: string }[];
  readonly photos?: readonly { readonly value: string }[];
}

/**
 * Crowdin, and Crowdin Enterprise with the organization that the user logs in with: `new Strategy({ ...crowdin, … })`.
 * Refresh tokens rotate, access tokens live two hours, the API takes 20 requests of an account at once. As documented in
 * November 2026.
 *
 * @see https://support.crowdin.com/developer/authorizing-oauth-apps/
 * @see https://support.crowdin.com/developer/understanding-scopes/ for what `scope` may be
 */
export const crowdin: {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly enterpriseBaseUrl: string;
  readonly pkce: true;
  readonly concurrency: number;
  readonly organizationDomain: (claims: Readonly<Record<string, unknown>>) => unknown;
  readonly userProfile: (client: ApiClient) => Promise<CrowdinProfile>;
} = Object.freeze({
  authUrl: 'https://accounts.crowdin.com',
  baseUrl: 'https://api.crowdin.com',
  enterpriseBaseUrl: 'https://{domain}.api.crowdin.com',
  pkce: true,
  concurrency: 20,
  // `null` for users without one.
  organizationDomain: (claims: Readonly<Record<string, unknown>>) => claims.domain ?? claims.organization_domain,
  userProfile: crowdinProfile,
} as const);

/**
 * The emulator of this package on its default port, as `passport-oauth-app emulator` starts it.
 */
export const emulator: {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly enterpriseBaseUrl: string;
  readonly pkce: true;
  readonly userProfile: IdentifyingProvider['userProfile'];
} = Object.freeze({
  authUrl: 'http://127.0.0.1:4000',
  baseUrl: 'http://127.0.0.1:4000',
  enterpriseBaseUrl: 'http://{domain}.api.localhost:4000',
  pkce: true,
  userProfile: profileFrom('/user', { id: 'id', displayName: 'fullName' }, 'data'),
} as const);

/** Reads the profile. Crowdin has one `fullName`, Crowdin Enterprise `firstName` and `lastName`. */
async function crowdinProfile(client: ApiClient): Promise<CrowdinProfile> {
  const user = fieldsOf(await client.get('/user'), 'data');
  const { id, username, email, avatarUrl } = user;
  const names = [textOf(user.firstName), textOf(user.lastName)].filter((name) => name !== undefined);
  const displayName = textOf(user.fullName) ?? textOf(names.join(' ')) ?? textOf(username);
  return {
    ...(typeof id === 'number' || typeof id === 'string' ? { id: String(id) } : {}),
    ...(typeof username === 'string' ? { username } : {}),
    ...(displayName === undefined ? {} : { displayName }),
    ...(typeof email === 'string' ? { emails: [{ value: email }] } : {}),
    ...(typeof avatarUrl === 'string' ? { photos: [{ value: avatarUrl }] } : {}),
  };
}
