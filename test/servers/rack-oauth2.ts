import { type AuthorizationServer, authorizeByForms } from './authorization-server.js';
import { debianVersion, startDebianProgram } from './debian-program.js';

const packages = ['ruby-rack-oauth2', 'puma'];

/** Ruby's server for Rack. It decodes Basic credentials; a refresh issues no new refresh token. */
export const rackOauth2: AuthorizationServer = {
  name: 'rack-oauth2',
  packages,
  version: debianVersion(packages),
  options: {
    authorizationPath: '/authorize',
    tokenPath: '/token',
    tokenRequest: 'form',
    clientAuthentication: 'basic',
  },
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'kept',
  start: async (place) => ({
    ...(await startDebianProgram('/usr/bin/ruby', 'rack_oauth2.rb', place, /Listening on/)),
    authorize: authorizeByForms(place, { approve: /^Allow$/, decline: /^Deny$/ }),
    revoke: async (_tokens, user) => {
      await fetch(`${place.origin}/authorizations/${user}`, { method: 'DELETE' });
    },
  }),
};
