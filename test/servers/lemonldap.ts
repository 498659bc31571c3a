import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuthorizationServer, authorizeByForms } from './authorization-server.js';
import { debianVersion, startDebianProgram } from './debian-program.js';

const packages = [
  'liblemonldap-ng-portal-perl',
  // Debian only recommends them; the portal does not start without.
  'libgd-securityimage-perl',
  'libimage-magick-perl',
  'libstring-random-perl',
  'libio-string-perl',
];

/** Its demonstration users: the password is the name. */
const DEMONSTRATION: Readonly<Record<string, string>> = { ada: 'dwho', ben: 'rtyler', cleo: 'msmith' };

/** LemonLDAP::NG, a portal in Perl. A dead refresh token is an `invalid_request`. */
export const lemonldap: AuthorizationServer = {
  name: 'LemonLDAP::NG',
  packages,
  version: debianVersion(packages),
  options: {
    authorizationPath: '/oauth2/authorize',
    tokenPath: '/oauth2/token',
    tokenRequest: 'form',
    scope: 'openid',
    endsGrant: ({ error }) => error === 'invalid_grant' || error === 'invalid_request',
  },
  identity: { path: '/oauth2/userinfo', user: ({ sub }) => sub },
  lostAnswer: 'kept',
  start: async (place) => {
    const authorize = authorizeByForms(place, { approve: /^Accept$/, decline: /^Refuse$/ });
    return {
      ...(await startDebianProgram('/usr/bin/perl', 'lemonldap.pl', place, /^starting$/)),
      authorize: (browser, url, visitor) => {
        const user = DEMONSTRATION[visitor.name] ?? '';
        return authorize(browser, url, { ...visitor, name: user, password: user, script: refuse });
      },
      // As the administrator does who deletes the sessions of a user: there is no revocation endpoint.
      revoke: async (_tokens, name) => {
        const folder = join(place.folder, 'sessions');
        for (const file of await readdir(folder, { withFileTypes: true })) {
          const path = join(folder, file.name);
          if (file.isFile() && (await readFile(path, 'utf8')).includes(DEMONSTRATION[name] ?? '')) await rm(path);
        }
      },
    };
  },
};

/** As the script of its consent page does. */
function refuse(fields: Map<string, string>, pressed: string): void {
  if (pressed === 'Refuse') fields.set('confirm', `-${fields.get('confirm')}`);
}
