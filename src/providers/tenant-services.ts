import type { ApiClient } from '../api/api-client.js';
import type { StrategyOptions } from '../options.js';
import { type Fields, profileFrom, type ServiceProfile } from './service-profile.js';

/**
 * Options of a service whose customers each have a host: `authUrl` and `baseUrl` are the customer's. To be spread into the options
 * of `tenants()`, or of a strategy for one customer.
 */
export type TenantProvider = Pick<
  StrategyOptions,
  | ('authorizationPath' | 'tokenPath' | 'revocationPath' | 'apiPath' | 'tokenRequest' | 'tokenParams')
  | ('scopeSeparator' | 'accessTokenHeader' | 'pkce')
> & {
  readonly userProfile: (client: ApiClient, tokenResponse: Fields) => Promise<ServiceProfile>;
};

/**
 * Zendesk. `authUrl` and `baseUrl` are the customer's: `https://acme.zendesk.com`. `scope` has to include `read` or `users:read`:
 * the profile is `GET /users/me.json`. Access tokens live 30 minutes, refresh tokens 30 days unless the client sets other times;
 * a refresh ends both former tokens. As documented in November 2026.
 *
 * @see https://developer.zendesk.com/documentation/api-basics/authentication/refresh-token
 * @see https://support.zendesk.com/hc/en-us/articles/10212201463962
 */
export const zendesk: TenantProvider = Object.freeze({
  authorizationPath: '/oauth/authorizations/new',
  tokenPath: '/oauth/tokens',
  pkce: true,
  userProfile: profileFrom('/users/me.json', { id: 'id', displayName: 'name', email: 'email' }, 'user'),
});

/**
 * Shopify, with expiring tokens of the kind that work offline. `authUrl` and `baseUrl` are the shop's: `https://acme.myshopify.com`.
 * Paths of the API begin with its version: `/2026-10/graphql.json`. Tokens belong to the shop, so `profile.id` is the shop's, and
 * a new login ends the tokens of the former one: give all users of a shop one `grantId`. Access tokens live an hour, refresh
 * tokens 90 days; a used one works until its replacement is used. As documented in November 2026.
 *
 * @see https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens/offline-access-tokens
 * @see https://shopify.dev/changelog/more-resilient-refreshes-for-expiring-offline-access-tokens
 */
export const shopify: TenantProvider = Object.freeze({
  authorizationPath: '/admin/oauth/authorize',
  tokenPath: '/admin/oauth/access_token',
  apiPath: '/admin/api',
  scopeSeparator: ',',
  accessTokenHeader: 'X-Shopify-Access-Token',
  tokenParams: ({ grantType }: { readonly grantType: string }): Readonly<Record<string, string>> =>
    grantType === 'authorization_code' ? { expiring: '1' } : {},
  userProfile: profileFrom(
    (client) => client.post('/2026-10/graphql.json', { json: { query: '{ shop { id name myshopifyDomain } }' } }),
    { id: 'id', username: 'myshopifyDomain', displayName: 'name' },
    ...['data', 'shop'],
  ),
});
