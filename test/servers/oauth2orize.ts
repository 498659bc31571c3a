import { type AuthorizationServer, authorizeByForms } from './authorization-server.js';
import { npmVersion, startNodeProgram } from './node-program.js';

const NAME = 'oauth2orize';

/** The toolkit of Passport's author. What it keeps is the application's own; a wrong secret is a 401 without JSON. */
export const oauth2orize: AuthorizationServer = {
  name: NAME,
  packages: [NAME],
  version: npmVersion(NAME),
  options: { authorizationPath: '/authorize', tokenPath: '/token', tokenRequest: 'form' },
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startNodeProgram('oauth2orize', place)),
    authorize: authorizeByForms(place, { approve: /^Allow$/, decline: /^Deny$/ }),
    revoke: async (_tokens, user) => {
      await fetch(`${place.origin}/authorizations/${user}`, { method: 'DELETE' });
    },
  }),
};
