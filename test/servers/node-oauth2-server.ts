import { type AuthorizationServer, authorizeByForms } from './authorization-server.js';
import { npmVersion, startNodeProgram } from './node-program.js';

const NAME = '@node-oauth/oauth2-server';

/** Middleware of Node's applications; what it keeps is the application's own. */
export const nodeOauth2Server: AuthorizationServer = {
  name: NAME,
  packages: [NAME],
  version: npmVersion(NAME),
  options: { authorizationPath: '/authorize', tokenPath: '/token', tokenRequest: 'form' },
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startNodeProgram('node-oauth2-server', place)),
    authorize: authorizeByForms(place, { approve: /^Allow$/, decline: /^Deny$/ }),
    revoke: async (_tokens, user) => {
      await fetch(`${place.origin}/authorizations/${user}`, { method: 'DELETE' });
    },
  }),
};
