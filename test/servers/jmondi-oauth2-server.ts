import { type AuthorizationServer, authorizeByForms, revokeAt } from './authorization-server.js';
import { npmVersion, startNodeProgram } from './node-program.js';

const NAME = '@jmondi/oauth2-server';

const options: AuthorizationServer['options'] = {
  authorizationPath: '/authorize',
  tokenPath: '/token',
  tokenRequest: 'form',
  endsGrant: ({ error }) => error === 'invalid_grant' || error === 'invalid_request',
};

/** Middleware of Node's applications. Access tokens are JWTs; a dead refresh token is an `invalid_request`. */
export const jmondiOauth2Server: AuthorizationServer = {
  name: NAME,
  packages: [NAME],
  version: npmVersion(NAME),
  options,
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startNodeProgram('jmondi-oauth2-server', place)),
    authorize: authorizeByForms(place, { approve: /^Allow$/, decline: /^Deny$/ }),
    revoke: revokeAt('/token/revoke', place, options),
  }),
};
