import type { StrategyOptions } from '../options.js';

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
      | 'authorizationParams'
      | 'scopeSeparator'
    >
  >;

/**
 * GitLab.com. For an own instance replace `authUrl` and `baseUrl`. Access tokens live two hours; a refresh invalidates both
 * tokens of the pair. As documented in November 2026.
 *
 * @see https://docs.gitlab.com/api/oauth2/
 */
export const gitlab: Provider = Object.freeze({
  authUrl: 'https://gitlab.com',
  baseUrl: 'https://gitlab.com',
  apiPath: '/api/v4',
  tokenRequest: 'form',
});

/**
 * Jira and Confluence Cloud, OAuth 2.0 (3LO). `scope` has to include `offline_access`, otherwise there is no refresh token.
 * Refresh tokens rotate. Paths of the API begin with the product and the site: `/ex/jira/{cloudid}/rest/api/3/…`. As
 * documented in November 2026.
 *
 * @see https://developer.atlassian.com/cloud/oauth/getting-started/refresh-tokens
 */
export const atlassian: Provider = Object.freeze({
  authUrl: 'https://auth.atlassian.com',
  baseUrl: 'https://api.atlassian.com',
  authorizationPath: '/authorize',
  apiPath: '',
  authorizationParams: Object.freeze({ audience: 'api.atlassian.com', prompt: 'consent' }),
});

/**
 * Linear. Its API is GraphQL: `client.post('/graphql', { json: { query } })`. Scopes are separated by commas. Applications
 * have refresh tokens since April 2026. As documented in November 2026.
 *
 * @see https://linear.app/developers/oauth-2-0-authentication
 */
export const linear: Provider = Object.freeze({
  authUrl: 'https://api.linear.app',
  baseUrl: 'https://api.linear.app',
  authorizationPath: 'https://linear.app/oauth/authorize',
  apiPath: '',
  tokenRequest: 'form',
  scopeSeparator: ',',
});

/**
 * HubSpot, with the third version of its token endpoint (the first one ends in February 2027). Access tokens live 30 minutes.
 * Paths of the API begin with the product: `/crm/v3/objects/contacts`. As documented in November 2026.
 *
 * @see https://developers.hubspot.com/docs/api-reference/auth-oauth-v3/guide
 */
export const hubspot: Provider = Object.freeze({
  authUrl: 'https://api.hubapi.com',
  baseUrl: 'https://api.hubapi.com',
  authorizationPath: 'https://app.hubspot.com/oauth/authorize',
  tokenPath: '/oauth/v3/token',
  apiPath: '',
  tokenRequest: 'form',
});

/**
 * Zoom, applications of users. Access tokens live an hour; each refresh returns a new refresh token, and only the latest one
 * works. Scopes are set in the application. As documented in November 2026.
 *
 * @see https://developers.zoom.us/docs/integrations/oauth/
 */
export const zoom: Provider = Object.freeze({
  authUrl: 'https://zoom.us',
  baseUrl: 'https://api.zoom.us',
  apiPath: '/v2',
  scope: '',
  tokenRequest: 'form',
  clientAuthentication: 'basic',
});

/**
 * Box, custom applications with OAuth 2.0. Access tokens live an hour, refresh tokens 60 days or one use. Scopes are set in
 * the application. As documented in November 2026.
 *
 * @see https://developer.box.com/guides/authentication/tokens
 */
export const box: Provider = Object.freeze({
  authUrl: 'https://account.box.com',
  baseUrl: 'https://api.box.com',
  authorizationPath: '/api/oauth2/authorize',
  tokenPath: 'https://api.box.com/oauth2/token',
  apiPath: '/2.0',
  scope: '',
  tokenRequest: 'form',
});

/**
 * Miro, applications with expiring tokens. Access tokens live an hour, refresh tokens 60 days. Scopes are set in the
 * application. As documented in November 2026.
 *
 * @see https://developers.miro.com/docs/getting-started-with-oauth
 */
export const miro: Provider = Object.freeze({
  authUrl: 'https://miro.com',
  baseUrl: 'https://api.miro.com',
  tokenPath: 'https://api.miro.com/v1/oauth/token',
  apiPath: '/v2',
  scope: '',
  tokenRequest: 'form',
});

/**
 * Calendly. Access tokens live two hours, refresh tokens until they are used. As documented in November 2026.
 *
 * @see https://developer.calendly.com/how-to-access-calendly-data-on-behalf-of-authenticated-users
 */
export const calendly: Provider = Object.freeze({
  authUrl: 'https://auth.calendly.com',
  baseUrl: 'https://api.calendly.com',
  apiPath: '',
  scope: '',
  tokenRequest: 'form',
});

/**
 * GitHub Apps with expiring user tokens. Access tokens live eight hours, refresh tokens six months; a refresh invalidates
 * both tokens of the pair. What an application may do is set in the application, not by scopes. As documented in November
 * 2026.
 *
 * @see https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
 */
export const github: Provider = Object.freeze({
  authUrl: 'https://github.com',
  baseUrl: 'https://api.github.com',
  authorizationPath: '/login/oauth/authorize',
  tokenPath: '/login/oauth/access_token',
  apiPath: '',
  scope: '',
  tokenRequest: 'form',
});
