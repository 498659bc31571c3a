import { type AuthorizationServer, authorizeByForms, revokeAt } from './authorization-server.js';
import { debianVersion, startDebianProgram } from './debian-program.js';

const packages = ['ruby-doorkeeper', 'ruby-railties', 'ruby-activerecord', 'ruby-sqlite3', 'puma'];
const options = { tokenRequest: 'form' } as const;
const doorkeeper = {
  packages,
  version: debianVersion(packages),
  options: { ...options, tokenPath: '/oauth/token' },
  identity: { path: '/me', user: ({ id }) => id },
} satisfies Partial<AuthorizationServer>;

const start =
  (revokesAtOnce: boolean): AuthorizationServer['start'] =>
  async (place) => ({
    ...(await startDebianProgram('/usr/bin/ruby', 'doorkeeper.rb', { ...place, revokesAtOnce }, /Listening on/)),
    authorize: authorizeByForms(place, { approve: /^Authorize$/, decline: /^Deny$/ }),
    revoke: revokeAt('/oauth/revoke', place, options),
  });

/** Rails' provider, the server of GitLab and Mastodon, with the tables that its generator makes. */
export const doorkeeperOfToday: AuthorizationServer = {
  ...doorkeeper,
  name: 'Doorkeeper',
  lostAnswer: 'kept',
  start: start(false),
};

/** The same without the column `previous_refresh_token`. */
export const doorkeeperWithoutColumn: AuthorizationServer = {
  ...doorkeeper,
  name: 'Doorkeeper without `previous_refresh_token`',
  lostAnswer: 'lost',
  start: start(true),
};
