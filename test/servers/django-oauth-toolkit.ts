import { type AuthorizationServer, authorizeByForms, revokeAt } from './authorization-server.js';
import { debianVersion, startDebianProgram } from './debian-program.js';

const packages = ['python3-django-oauth-toolkit'];
const options = { authorizationPath: '/o/authorize/', tokenPath: '/o/token/', tokenRequest: 'form' } as const;

/** Django's provider. The paths of its endpoints end with a slash. */
export const djangoOauthToolkit: AuthorizationServer = {
  name: 'django-oauth-toolkit',
  packages,
  version: debianVersion(packages),
  options,
  identity: { path: '/me', user: ({ id }) => id },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startDebianProgram('/usr/bin/python3', 'django_oauth_toolkit.py', place, /Starting development server/)),
    authorize: authorizeByForms(place, { approve: /^Authorize$/, decline: /^Cancel$/ }),
    revoke: revokeAt('/o/revoke_token/', place, options),
  }),
};
