import { type AuthorizationServer, authorizeByForms, revokeAt } from './authorization-server.js';
import { debianVersion, startDebianProgram } from './debian-program.js';

const packages = ['python3-authlib', 'python3-flask', 'python3-sqlalchemy'];
const options = { tokenPath: '/oauth/token', tokenRequest: 'form', clientAuthentication: 'basic-raw' } as const;

/** Authlib's server for Flask. It does not decode Basic credentials. */
export const authlib: AuthorizationServer = {
  name: 'Authlib',
  packages,
  version: debianVersion(packages),
  options,
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startDebianProgram('/usr/bin/python3', 'flask_authlib.py', place, /Running on/)),
    authorize: authorizeByForms(place, { approve: /^Allow$/, decline: /^Deny$/ }),
    revoke: revokeAt('/oauth/revoke', place, options),
  }),
};
