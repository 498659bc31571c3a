import type { EmulatorRoute } from './api.js';
import type { EmulatorUser } from './directory.js';
import type { ProfileName } from './profiles.js';

/** How a service with opaque access tokens names the user of a token. */
export interface Identity {
  /** The resource of the user, below the path of the API. */
  readonly routes?: readonly EmulatorRoute[];
  /** Further fields of the token response. */
  readonly tokenFields?: (user: EmulatorUser, origin: string) => Readonly<Record<string, unknown>>;
}

/** Returns the resource of the user. */
function resource(path: string, body: (user: EmulatorUser) => unknown, method = 'GET'): Identity {
  return { routes: [{ method, path, handler: ({ user }) => body(user) }] };
}

/** Returns an ID token with a fake signature: clients need not verify a token that comes from the token endpoint. */
function unsignedToken(claims: Readonly<Record<string, unknown>>): string {
  const parts = [{ alg: 'RS256', typ: 'JWT' }, claims].map((part) => Buffer.from(JSON.stringify(part)));
  return [...parts, Buffer.from('no signature')].map((part) => part.toString('base64url')).join('.');
}

/** As the services documented it in November 2026. */
const identities: Readonly<Partial<Record<ProfileName, Identity>>> = {
  gitlab: resource('/user', ({ id, name }) => ({ id, username: name, name })),
  atlassian: resource('/me', ({ id, name }) => ({ account_id: id, name, nickname: name })),
  linear: resource('/graphql', ({ id, name }) => ({ data: { viewer: { id, name, displayName: name } } }), 'POST'),
  hubspot: { tokenFields: ({ id }) => ({ user_id: id, hub_id: 1 }) },
  zoom: resource('/users/me', ({ id, name }) => ({ id, display_name: name })),
  box: resource('/users/me', ({ id, name }) => ({ type: 'user', id, name })),
  miro: { tokenFields: ({ id }) => ({ user_id: id, team_id: '1' }) },
  calendly: { tokenFields: ({ id }) => ({ owner: `https://api.calendly.com/users/${id}` }) },
  github: resource('/user', ({ id, name }) => ({ id, login: name, name })),
  google: resource('/oauth2/v3/userinfo', ({ id, name }) => ({ sub: id, name })),
  microsoft: resource('/me', ({ id, name }) => ({ id, displayName: name, userPrincipalName: name })),
  discord: resource('/users/@me', ({ id, name }) => ({ id, username: name, global_name: name })),
  twitch: resource('/users', ({ id, name }) => ({ data: [{ id, login: name, display_name: name }] })),
  spotify: resource('/me', ({ id, name }) => ({ id, display_name: name })),
  quickbooks: { tokenFields: ({ id }) => ({ id_token: unsignedToken({ sub: id }) }) },
  salesforce: {
    tokenFields: ({ id }, origin) => ({
      token_type: 'Bearer',
      instance_url: origin,
      id: `https://login.salesforce.com/id/00D000000000001EAA/${id}`,
    }),
  },
  zendesk: resource('/users/me.json', ({ id, name }) => ({ user: { id, name } })),
  // Its answers have no token_type. Tokens belong to the shop, whichever member has approved.
  shopify: {
    routes: [
      {
        method: 'POST',
        path: '/{version}/graphql.json',
        handler: ({ headers: { host = '' } }) => {
          const [name = ''] = host.split('.');
          return {
            data: { shop: { id: `gid://shopify/Shop/${name}`, name, myshopifyDomain: `${name}.myshopify.com` } },
          };
        },
      },
    ],
    tokenFields: () => ({ token_type: undefined, scope: undefined }),
  },
};

/** Returns how the service of a profile names the user of a token. Custom profiles have no such thing. */
export function identityOf(profile: unknown): Identity {
  return (typeof profile === 'string' && new Map(Object.entries(identities)).get(profile)) || {};
}
