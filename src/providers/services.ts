import type { ApiClient } from '../api/api-client.js';
import type { StrategyOptions } from '../options.js';
import { claimsOf, type Fields, fieldsOf, profileFrom, type ServiceProfile } from './service-profile.js';

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
      | 'revocationPath'
      | 'apiPath'
      | 'tokenRequest'
      | 'clientAuthentication'
      | 'endsGrant'
      | 'declines'
      | 'issuer'
      | 'tokenParams'
      | 'grantedScopes'
      | 'accessTokenLifetime'
      | 'authorizationParams'
      | 'scopeSeparator'
    >
  >;

/** A provider of a service whose access tokens are opaque: its `userProfile` gives the `id`. */
export interface IdentifyingProvider extends Provider {
  readonly userProfile: (client: ApiClient, tokenResponse: Fields) => Promise<ServiceProfile>;
}

/** Returns the names, and those with a prefix without it too. */
function withShortNames(names: readonly string[], prefix: string): string[] {
  return names.flatMap((name) => (name.startsWith(prefix) ? [name, name.slice(prefix.length)] : [name]));
}

/** The scopes that another one implies, beside those of its name. */
const GITHUB_IMPLIES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    repo: ['repo:status', 'repo_deployment', 'public_repo', 'repo:invite', 'security_events'],
    user: ['read:user', 'user:email', 'user:follow'],
    project: ['read:project'],
    codespace: ['codespace:secrets'],
    'admin:enterprise': ['manage_runners:enterprise', 'manage_billing:enterprise'],
  }),
);

/**
 * Returns a scope of GitHub with those that it implies: `admin:` implies `write:`, which implies `read:`.
 *
 * @see https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps
 */
function withImpliedScopes(name: string): string[] {
  const [, level, subject] = /^(admin|write):(.+)$/.exec(name) ?? [];
  const lower = level === undefined ? [] : [`write:${subject}`, `read:${subject}`];
  return [...new Set([name, ...lower, ...(GITHUB_IMPLIES.get(name) ?? [])])];
}

/**
 * GitLab.com. For an own instance replace `authUrl` and `baseUrl`. `scope` has to include `read_user`, `read_api` or `api`:
 * the profile is `GET /user`. Access tokens live two hours; a refresh invalidates both tokens of the pair. As documented in
 * November 2026.
 *
 * @see https://docs.gitlab.com/api/oauth2/
 * @see https://docs.gitlab.com/api/oauth2/#revoke-a-token
 */
export const gitlab: IdentifyingProvider = Object.freeze({
  authUrl: 'https://gitlab.com',
  baseUrl: 'https://gitlab.com',
  revocationPath: '/oauth/revoke',
  apiPath: '/api/v4',
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom('/user', { id: 'id', username: 'username', displayName: 'name', email: 'email' }),
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
  pkce: true,
  apiPath: '',
  authorizationParams: Object.freeze({ audience: 'api.atlassian.com', prompt: 'consent' }),
  userProfile: profileFrom('/me', { id: 'account_id', username: 'nickname', displayName: 'name', email: 'email' }),
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
  userProfile: profileFrom(
    (client) => client.post('/graphql', { json: { query: '{ viewer { id name displayName email } }' } }),
    { id: 'id', username: 'displayName', displayName: 'name', email: 'email' },
    ...['data', 'viewer'],
  ),
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
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom((_client, tokens) => tokens, { id: 'user_id' }),
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
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  userProfile: profileFrom('/users/me', { id: 'id', displayName: 'display_name', email: 'email' }),
});

/**
 * Box, custom applications with OAuth 2.0. Access tokens live an hour, refresh tokens 60 days or one use. Scopes are set in
 * the application. As documented in November 2026.
 *
 * @see https://developer.box.com/guides/authentication/tokens
 * @see https://developer.box.com/reference/post-oauth2-revoke
 */
export const box: IdentifyingProvider = Object.freeze({
  authUrl: 'https://account.box.com',
  baseUrl: 'https://api.box.com',
  authorizationPath: '/api/oauth2/authorize',
  tokenPath: 'https://api.box.com/oauth2/token',
  revocationPath: 'https://api.box.com/oauth2/revoke',
  apiPath: '/2.0',
  scope: '',
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom('/users/me', { id: 'id', displayName: 'name', email: 'login' }),
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
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom((_client, tokens) => tokens, { id: 'user_id' }),
});

/**
 * Calendly. Access tokens live two hours, refresh tokens until they are used. As documented in November 2026.
 *
 * @see https://developer.calendly.com/how-to-access-calendly-data-on-behalf-of-authenticated-users
 * @see https://developer.calendly.com/api-docs/calendly-o-auth/o-auth/post-oauth-revoke
 */
export const calendly: IdentifyingProvider = Object.freeze({
  authUrl: 'https://auth.calendly.com',
  baseUrl: 'https://api.calendly.com',
  revocationPath: '/oauth/revoke',
  apiPath: '',
  scope: '',
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom((_client, tokens) => tokens, { id: 'owner' }),
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
  pkce: true,
  tokenRequest: 'form',
  userProfile: profileFrom('/user', { id: 'id', username: 'login', displayName: 'name', email: 'email' }),
  // Of an OAuth app: a scope grants those below it, and GitHub leaves these out of its answer.
  grantedScopes: (names: string[]): string[] => names.flatMap(withImpliedScopes),
});

/**
 * Google. `authorizationParams` ask for a refresh token at each login: without `prompt=consent` only the first one brings it.
 * `scope` has to include `openid`: the profile is the UserInfo resource. Refresh tokens do not rotate. For an API on another
 * host, such as `https://gmail.googleapis.com`, set `userProfile` too. As documented in November 2026; the address of the UserInfo
 * resource is that of an older discovery document, because it is on the host of the API.
 *
 * @see https://developers.google.com/identity/protocols/oauth2/web-server
 * @see https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
 */
export const google: IdentifyingProvider = Object.freeze({
  authUrl: 'https://accounts.google.com',
  baseUrl: 'https://www.googleapis.com',
  authorizationPath: '/o/oauth2/v2/auth',
  tokenPath: 'https://oauth2.googleapis.com/token',
  revocationPath: 'https://oauth2.googleapis.com/revoke',
  apiPath: '',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
  authorizationParams: Object.freeze({ access_type: 'offline', prompt: 'consent' }),
  userProfile: profileFrom('/oauth2/v3/userinfo', { id: 'sub', displayName: 'name', email: 'email' }),
  // It answers with the long names of `email` and `profile`.
  grantedScopes: (names: string[]): string[] => withShortNames(names, 'https://www.googleapis.com/auth/userinfo.'),
});

/**
 * Microsoft Entra ID and personal accounts, with Microsoft Graph. `common` takes accounts of every kind: for one tenant, set
 * `authorizationPath` and `tokenPath`. `scope` has to include `offline_access` for a refresh token, and `User.Read` for the
 * profile. Refresh tokens live 90 days; each use brings a new one, and the old one stays valid. Where the access token is a JWT,
 * `profile.id` is its `sub`. As documented in November 2026.
 *
 * @see https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow
 * @see https://learn.microsoft.com/en-us/entra/identity-platform/refresh-tokens
 */
export const microsoft: IdentifyingProvider = Object.freeze({
  authUrl: 'https://login.microsoftonline.com',
  baseUrl: 'https://graph.microsoft.com',
  authorizationPath: '/common/oauth2/v2.0/authorize',
  tokenPath: '/common/oauth2/v2.0/token',
  apiPath: '/v1.0',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
  userProfile: profileFrom('/me', {
    id: 'id',
    username: 'userPrincipalName',
    displayName: 'displayName',
    email: 'mail',
  }),
  // It answers with the names of the API in full, or short, and leaves `offline_access` out.
  grantedScopes: (names: string[]): string[] => [
    ...withShortNames(names, 'https://graph.microsoft.com/'),
    'offline_access',
  ],
  // The second word asks for a login, as after a change of the password or of a policy.
  endsGrant: ({ error }: Refusal): boolean => error === 'invalid_grant' || error === 'interaction_required',
});

/**
 * Discord. `scope` has to include `identify`: the profile is `GET /users/@me`. Access tokens live seven days. As documented in
 * November 2026; whether refresh tokens rotate is not.
 *
 * @see https://discord.com/developers/docs/topics/oauth2
 * @see https://discord.com/.well-known/oauth-authorization-server
 */
export const discord: IdentifyingProvider = Object.freeze({
  authUrl: 'https://discord.com',
  baseUrl: 'https://discord.com',
  authorizationPath: '/api/oauth2/authorize',
  tokenPath: '/api/oauth2/token',
  revocationPath: '/api/oauth2/token/revoke',
  apiPath: '/api/v10',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
  userProfile: profileFrom('/users/@me', {
    id: 'id',
    username: 'username',
    displayName: 'global_name',
    email: 'email',
  }),
});

/**
 * Twitch. Its API requires your client ID as a header, which no provider can know: set `headers: { 'Client-Id': clientID }`.
 * Without it, the profile, `GET /users`, is refused, and each login fails. Twitch wants access tokens validated every hour. As
 * documented in November 2026.
 *
 * @see https://dev.twitch.tv/docs/authentication/getting-tokens-oauth
 * @see https://dev.twitch.tv/docs/authentication/refresh-tokens
 */
export const twitch: IdentifyingProvider = Object.freeze({
  authUrl: 'https://id.twitch.tv',
  baseUrl: 'https://api.twitch.tv',
  authorizationPath: '/oauth2/authorize',
  tokenPath: '/oauth2/token',
  apiPath: '/helix',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
  userProfile: profileFrom(
    '/users',
    { id: 'id', username: 'login', displayName: 'display_name', email: 'email' },
    'data',
    '0',
  ),
  // Twitch has no word of RFC 6749, and leaves the field `error` out at times.
  endsGrant: ({ error, description }: Refusal): boolean =>
    error === 'invalid_grant' || description === 'Invalid refresh token',
});

/**
 * Spotify. Access tokens live an hour. A refresh may bring a new refresh token; without one, the old one stays. The profile is
 * `GET /me`; its email needs the scope `user-read-email`. As its clients use it in November 2026; its own pages could not be
 * compared.
 *
 * @see https://developer.spotify.com/documentation/web-api/tutorials/code-flow
 * @see https://developer.spotify.com/documentation/web-api/tutorials/refreshing-tokens
 */
export const spotify: IdentifyingProvider = Object.freeze({
  authUrl: 'https://accounts.spotify.com',
  baseUrl: 'https://api.spotify.com',
  authorizationPath: '/authorize',
  tokenPath: '/api/token',
  apiPath: '/v1',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  userProfile: profileFrom('/me', { id: 'id', displayName: 'display_name', email: 'email' }),
});

/**
 * QuickBooks Online. `scope` has to include `openid`: `profile.id` is the `sub` of the ID token in the token response, because
 * the UserInfo resource is on another host than the API. The company (`realmId`) stands in the query of the callback alone: read
 * it with `passReqToCallback`. Access tokens live an hour, refresh tokens 100 days, and they rotate. For a sandbox replace
 * `baseUrl` by `https://sandbox-quickbooks.api.intuit.com`. As documented in November 2026; the endpoints are those of the
 * sandbox's discovery document, which its SDKs use for production too.
 *
 * @see https://developer.intuit.com/app/developer/qbo/docs/develop/authentication-and-authorization/oauth-2.0
 * @see https://developer.intuit.com/.well-known/openid-sandbox-configuration
 */
export const quickbooks: IdentifyingProvider = Object.freeze({
  authUrl: 'https://appcenter.intuit.com',
  baseUrl: 'https://quickbooks.api.intuit.com',
  authorizationPath: '/connect/oauth2',
  tokenPath: 'https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer',
  apiPath: '/v3',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  userProfile: profileFrom((_client, { id_token: idToken }) => claimsOf(idToken), { id: 'sub' }),
});

/**
 * LinkedIn. `scope` has to include `openid` and `profile`: the profile is the UserInfo resource. Access tokens live 60 days.
 * Refresh tokens, for approved partners only, live a year and do not rotate. Without one, the login lasts as long as its
 * access token. As documented in November 2026.
 *
 * @see https://learn.microsoft.com/en-us/linkedin/shared/authentication/authorization-code-flow
 * @see https://learn.microsoft.com/en-us/linkedin/shared/authentication/programmatic-refresh-tokens
 */
export const linkedin: IdentifyingProvider = Object.freeze({
  authUrl: 'https://www.linkedin.com',
  baseUrl: 'https://api.linkedin.com',
  authorizationPath: '/oauth/v2/authorization',
  tokenPath: '/oauth/v2/accessToken',
  apiPath: '',
  tokenRequest: 'form',
  userProfile: profileFrom('/v2/userinfo', { id: 'sub', displayName: 'name', email: 'email' }),
  // Integrators report both words.
  endsGrant: ({ error, description = '' }: Refusal): boolean =>
    error === 'invalid_grant' ||
    (error === 'invalid_request' && /refresh token.*(?:invalid|expired|revoked)/i.test(description)),
});

/**
 * Fitbit, applications of the type "server". Access tokens live eight hours; refresh tokens rotate. The token response names
 * the user. Paths of the API begin with its version: `/1/user/-/profile.json`. As documented in November 2026.
 *
 * @see https://dev.fitbit.com/build/reference/web-api/authorization/refresh-token/
 * @see https://dev.fitbit.com/build/reference/web-api/authorization/revoke-token/
 */
export const fitbit: IdentifyingProvider = Object.freeze({
  authUrl: 'https://www.fitbit.com',
  baseUrl: 'https://api.fitbit.com',
  authorizationPath: '/oauth2/authorize',
  tokenPath: 'https://api.fitbit.com/oauth2/token',
  revocationPath: 'https://api.fitbit.com/oauth2/revoke',
  apiPath: '',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  userProfile: profileFrom((_client, tokens) => tokens, { id: 'user_id' }),
});

/**
 * Strava. Scopes are separated by commas. Access tokens live six hours; a refresh may bring a new refresh token, and only the
 * latest one works. The answer to the code names the athlete. What the athlete has granted stands in the query of the callback
 * alone. As documented in November 2026.
 *
 * @see https://developers.strava.com/docs/authentication/
 */
export const strava: IdentifyingProvider = Object.freeze({
  authUrl: 'https://www.strava.com',
  baseUrl: 'https://www.strava.com',
  apiPath: '/api/v3',
  tokenRequest: 'form',
  scopeSeparator: ',',
  userProfile: profileFrom(
    (_client, tokens) => tokens,
    { id: 'id', username: 'username', displayName: ['firstname', 'lastname'] },
    'athlete',
  ),
  // No word of RFC 6749: `{ message, errors: [{ resource: 'RefreshToken', code: 'invalid' }] }`.
  endsGrant: ({ body }: Refusal): boolean => {
    const { errors } = fieldsOf(body);
    return Array.isArray(errors) && errors.some((entry: unknown) => fieldsOf(entry).resource === 'RefreshToken');
  },
});

/**
 * Salesforce, one organization: `new Strategy({ ...salesforce, baseUrl: 'https://acme.my.salesforce.com', … })`. For a sandbox
 * replace `authUrl` by `https://test.salesforce.com`. `scope` has to include `refresh_token`. Token responses state no lifetime:
 * sessions live two hours unless the organization says otherwise, and a 401 renews the token. Refresh tokens do not rotate
 * unless that is set; then a used one revokes the grant. `profile.id` is the URL that identifies the user. Paths of the API
 * begin with a version: `/v64.0/sobjects`. As documented in November 2026.
 *
 * @see https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_web_server_flow.htm
 */
export const salesforce: Omit<IdentifyingProvider, 'baseUrl'> = Object.freeze({
  authUrl: 'https://login.salesforce.com',
  authorizationPath: '/services/oauth2/authorize',
  tokenPath: '/services/oauth2/token',
  revocationPath: '/services/oauth2/revoke',
  apiPath: '/services/data',
  pkce: true,
  tokenRequest: 'form',
  accessTokenLifetime: 7_200,
  userProfile: profileFrom((_client, tokens) => tokens, { id: 'id' }),
  // Of two refreshes at once, the second is refused with this word too, although the refresh token is alive.
  endsGrant: ({ error, description }: Refusal): boolean =>
    error === 'invalid_grant' && !/already being processed/i.test(description ?? ''),
});

/**
 * Xero. `scope` has to include `offline_access` for a refresh token. Access tokens are JWTs and live 30 minutes: `profile.id` is
 * their `sub`. Refresh tokens rotate and last 60 days. Each API call names the organization: `headers: { 'Xero-Tenant-Id': … }`,
 * of those that `GET /connections` lists. Paths of the API begin with the product: `/api.xro/2.0/Invoices`. As documented in
 * November 2026.
 *
 * @see https://developer.xero.com/documentation/guides/oauth2/auth-flow
 */
export const xero: Provider = Object.freeze({
  authUrl: 'https://login.xero.com',
  baseUrl: 'https://api.xero.com',
  authorizationPath: '/identity/connect/authorize',
  tokenPath: 'https://identity.xero.com/connect/token',
  revocationPath: 'https://identity.xero.com/connect/revocation',
  apiPath: '',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'basic',
});

/** Options of software that its users run themselves: `authUrl`, `baseUrl` and `apiPath` are theirs. */
export type SelfHostedProvider = Omit<Provider, 'authUrl' | 'baseUrl'>;

/**
 * Doorkeeper, the OAuth provider of Rails applications, with the routes of `use_doorkeeper`:
 * `new Strategy({ ...doorkeeper, authUrl, baseUrl, … })`. Access tokens are opaque: set `userProfile` to a function that returns
 * the `id`. Refresh tokens rotate if `use_refresh_token` is set. Seen with version 5.5.0 in November 2026.
 *
 * @see https://doorkeeper.gitbook.io/guides
 * @see https://github.com/doorkeeper-gem/doorkeeper/wiki/API-endpoint-descriptions-and-examples
 */
export const doorkeeper: SelfHostedProvider = Object.freeze({
  authorizationPath: '/oauth/authorize',
  tokenPath: '/oauth/token',
  revocationPath: '/oauth/revoke',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
});

/**
 * Django OAuth Toolkit, with its URLs below `/o/` as in its tutorial: `new Strategy({ ...djangoOauthToolkit, authUrl, baseUrl, … })`.
 * Access tokens are opaque and live ten hours: set `userProfile` to a function that returns the `id`. Seen with version 1.7.0 in November 2026.
 *
 * @see https://django-oauth-toolkit.readthedocs.io/en/latest/settings.html
 * @see https://django-oauth-toolkit.readthedocs.io/en/latest/tutorial/tutorial_04.html
 */
export const djangoOauthToolkit: SelfHostedProvider = Object.freeze({
  authorizationPath: '/o/authorize/',
  tokenPath: '/o/token/',
  revocationPath: '/o/revoke_token/',
  pkce: true,
  tokenRequest: 'form',
  clientAuthentication: 'body',
});

/**
 * Returns the options of a realm of Keycloak: `new Strategy({ ...keycloak({ url, realm }), baseUrl, … })`. The access token is a
 * JWT, and its claim `sub` is `profile.id`. As documented in November 2026; not tried against a server.
 *
 * @param url - The address of Keycloak, such as `https://sso.example.com`; with the path `/auth` if it has one.
 * @param realm - The realm's name.
 * @see https://www.keycloak.org/securing-apps/oidc-layers
 */
export function keycloak({
  url,
  realm,
}: {
  readonly url: string;
  readonly realm: string;
}): SelfHostedProvider & Pick<Provider, 'authUrl'> {
  const endpoints = `/realms/${encodeURIComponent(realm)}/protocol/openid-connect`;
  return Object.freeze({
    authUrl: url,
    authorizationPath: `${endpoints}/auth`,
    tokenPath: `${endpoints}/token`,
    revocationPath: `${endpoints}/revoke`,
    tokenRequest: 'form',
    clientAuthentication: 'body',
    pkce: true,
  });
}
