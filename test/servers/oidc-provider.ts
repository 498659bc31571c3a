import { type AuthorizationServer, authorizeByForms, revokeAt } from './authorization-server.js';
import { npmVersion, startNodeProgram } from './node-program.js';

const options = {
  authorizationPath: '/auth',
  tokenPath: '/token',
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  scope: 'openid offline_access',
  authorizationParams: { prompt: 'consent' },
} as const;

/** A certified OpenID provider for Node. Refresh tokens come with the scope `offline_access` and a consent. */
export const oidcProvider: AuthorizationServer = {
  name: 'oidc-provider',
  packages: ['oidc-provider'],
  version: npmVersion('oidc-provider'),
  options,
  identity: { path: '/me', user: ({ sub }) => sub },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startNodeProgram('oidc-provider', place)),
    authorize: authorizeByForms(place, { approve: /^Continue$/, decline: /Cancel/ }),
    revoke: revokeAt('/token/revocation', place, options),
  }),
};
