import type { ApiClient } from '../api/api-client.js';
import type { StrategyOptions } from '../options.js';
import { type Fields, fieldsOf, type ServiceProfile, serviceProfile } from './service-profile.js';

/** The words of a refusal. */
type Refusal = Parameters<NonNullable<StrategyOptions['endsGrant']>>[0];

/** Options that are the same for every application of one service. To be spread into the options of a strategy. */
export type Provider = Pick<StrategyOptions, 'authUrl' | 'baseUrl'> &
  Partial<
    Pick<
      StrategyOptions,
      | 'enterpriseBaseUrl'
      | 'organizationDomain'
      | 'pkce'
      | 'userProfile'
      | 'concurrency'
      | 'name'
      | 'scope'
      | 'headers'
      | 'authorizationPath'
      | 'tokenPath'
      | 'apiPath'
      | 'tokenRequest'
      | 'clientAuthentication'
      | 'endsGrant'
      | 'authorizationParams'
      | 'scopeSeparator'
    >
  >;

/** A provider of a service whose access tokens are opaque: its `userProfile` gives the `id`. */
export interface IdentifyingProvider extends Provider {
  readonly userProfile: (client: ApiClient, tokenResponse: Fields) => Promise<ServiceProfile>;
}

/**
 * GitLab.com. For an own instance replace `authUrl` and `baseUrl`. `scope` has to include `read_user`, `read_api` or `api`:
 * the profile is `GET /user`. Access tokens live two hours; a refresh invalidates both tokens of the pair. As documented in
 * November 2026.
 *
 * @see https://docs.gitlab.com/api/oauth2/
 */
export const gitlab: IdentifyingProvider = Object.freeze({
  authUrl: 'https://gitlab.com',
  baseUrl: 'https://gitlab.com',
  apiPath: '/api/v4',
  tokenRequest: 'form',
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const { id, username, name, email } = fieldsOf(await client.get('/user'));
    return serviceProfile({ id, username, displayName: name, email });
  },
});

/**
 * Jira and Confluence Cloud, OAuth 2.0 (3LO). `scope` has to include `offline_access`, otherwise there is no refresh token, and
 * `read:me`: the profile is `GET /me`.
 * Refresh tokens rotate. Paths of the API begin with the product and the site: `/ex/jira/{cloudid}/rest/api/3/…`. As
 * documented in November 2026.
 *
 * @see https://developer.atlassian.com/cloud/oauth/getting-started/refresh-tokens
 */
export const atlassian: IdentifyingProvider = Object.freeze({
  authUrl: 'https://auth.atlassian.com',
  baseUrl: 'https://api.atlassian.com',
  authorizationPath: '/authorize',
  apiPath: '',
  authorizationParams: Object.freeze({ audience: 'api.atlassian.com', prompt: 'consent' }),
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const { account_id: id, nickname, name, email } = fieldsOf(await client.get('/me'));
    return serviceProfile({ id, username: nickname, displayName: name, email });
  },
});

/**
 * Linear. Its API is GraphQL: `client.post('/graphql', { json: { query } })`. Scopes are separated by commas. Applications
 * have refresh tokens since April 2026. As documented in November 2026.
 *
 * @see https://linear.app/developers/oauth-2-0-authentication
 */
export const linear: IdentifyingProvider = Object.freeze({
  authUrl: 'https://api.linear.app',
  baseUrl: 'https://api.linear.app',
  authorizationPath: 'https://linear.app/oauth/authorize',
  apiPath: '',
  tokenRequest: 'form',
  scopeSeparator: ',',
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const body = await client.post('/graphql', { json: { query: '{ viewer { id name displayName email } }' } });
    const { id, displayName, name, email } = fieldsOf(body, 'data', 'viewer');
    return serviceProfile({ id, username: displayName, displayName: name, email });
  },
});

/**
 * HubSpot, with the third version of its token endpoint (the first one ends in February 2027). Access tokens live 30 minutes.
 * The token response names the user.
 * Paths of the API begin with the product: `/crm/v3/objects/contacts`. As documented in November 2026.
 *
 * @see https://developers.hubspot.com/docs/api-reference/auth-oauth-v3/guide
 */
export const hubspot: IdentifyingProvider = Object.freeze({
  authUrl: 'https://api.hubapi.com',
  baseUrl: 'https://api.hubapi.com',
  authorizationPath: 'https://app.hubspot.com/oauth/authorize',
  tokenPath: '/oauth/v3/token',
  apiPath: '',
  tokenRequest: 'form',
  userProfile: async (_client: ApiClient, { user_id: id }: Fields): Promise<ServiceProfile> => serviceProfile({ id }),
  // As its support and integrators report it: the reference shows no error of a refresh.
  endsGrant: ({ error }: Refusal): boolean => error === 'invalid_grant' || error === 'BAD_REFRESH_TOKEN',
});

/**
 * Zoom, applications of users. Access tokens live an hour; each refresh returns a new refresh token, and only the latest one
 * works. Scopes are set in the application; `user:read:user` is for the profile. As documented in November 2026.
 *
 * @see https://developers.zoom.us/docs/integrations/oauth/
 */
export const zoom: IdentifyingProvider = Object.freeze({
  authUrl: 'https://zoom.us',
  baseUrl: 'https://api.zoom.us',
  apiPath: '/v2',
  scope: '',
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const { id, display_name: displayName, email } = fieldsOf(await client.get('/users/me'));
    return serviceProfile({ id, displayName, email });
  },
});

/**
 * Box, custom applications with OAuth 2.0. Access tokens live an hour, refresh tokens 60 days or one use. Scopes are set in
 * the application. As documented in November 2026.
 *
 * @see https://developer.box.com/guides/authentication/tokens
 */
export const box: IdentifyingProvider = Object.freeze({
  authUrl: 'https://account.box.com',
  baseUrl: 'https://api.box.com',
  authorizationPath: '/api/oauth2/authorize',
  tokenPath: 'https://api.box.com/oauth2/token',
  apiPath: '/2.0',
  scope: '',
  tokenRequest: 'form',
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const { id, name, login } = fieldsOf(await client.get('/users/me'));
    return serviceProfile({ id, displayName: name, email: login });
  },
});

/**
 * Miro, applications with expiring tokens. Access tokens live an hour, refresh tokens 60 days. Scopes are set in the
 * application. As documented in November 2026.
 *
 * @see https://developers.miro.com/docs/getting-started-with-oauth
 */
export const miro: IdentifyingProvider = Object.freeze({
  authUrl: 'https://miro.com',
  baseUrl: 'https://api.miro.com',
  tokenPath: 'https://api.miro.com/v1/oauth/token',
  apiPath: '/v2',
  scope: '',
  tokenRequest: 'form',
  userProfile: async (_client: ApiClient, { user_id: id }: Fields): Promise<ServiceProfile> => serviceProfile({ id }),
});

/**
 * Calendly. Access tokens live two hours, refresh tokens until they are used. As documented in November 2026.
 *
 * @see https://developer.calendly.com/how-to-access-calendly-data-on-behalf-of-authenticated-users
 */
export const calendly: IdentifyingProvider = Object.freeze({
  authUrl: 'https://auth.calendly.com',
  baseUrl: 'https://api.calendly.com',
  apiPath: '',
  scope: '',
  tokenRequest: 'form',
  userProfile: async (_client: ApiClient, { owner: id }: Fields): Promise<ServiceProfile> => serviceProfile({ id }),
});

/**
 * GitHub Apps with expiring user tokens. Access tokens live eight hours, refresh tokens six months; a refresh invalidates
 * both tokens of the pair. What an application may do is set in the application, not by scopes. As documented in November
 * 2026.
 *
 * @see https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
 */
export const github: IdentifyingProvider = Object.freeze({
  authUrl: 'https://github.com',
  baseUrl: 'https://api.github.com',
  authorizationPath: '/login/oauth/authorize',
  tokenPath: '/login/oauth/access_token',
  apiPath: '',
  scope: '',
  tokenRequest: 'form',
  userProfile: async (client: ApiClient): Promise<ServiceProfile> => {
    const { id, login, name, email } = fieldsOf(await client.get('/user'));
    return serviceProfile({ id, username: login, displayName: name, email });
  },
});
