import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { RequestGrants } from '../../src/session/request-grants.js';
import { threats } from '../support/threats.js';
import { requestOf } from './fixture.js';

type User = Readonly<Record<string, string & { readonly id: string }>>;

/** Returns the id for the grant of a user. The user is `req.user` too. */
function newId(grantId: (req: { readonly user: User }, user: User) => unknown, user: object | string | null): string {
  const req = requestOf({}, { user, session: { account: { id: '9' } } });
  return new RequestGrants({ name: 'oauth-app', grantId: grantId as never }).newId(req, user);
}

class Account {
  readonly #name = 'ada';
  readonly id = undefined;
  get name(): string {
    return this.#name;
  }
  key(): string {
    return `${this.#name}-${this.id}`;
  }
}

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object | string | null]>([
  [(_req, { id }) => `user_${id}`, { name: 'ada' }],
  [(_req, { id }) => `user_${id}`, { id: null }],
  [(_req, { id }) => `user_${id}`, 'ada'],
  [(_req, { id }) => `user_${id}`, Object.freeze({ id: undefined, username: 'us' })],
  [(_req, { id }) => `crowdin${id}`, {}],
  [(_req, { id }) => `${id}_svc`, {}],
  [(_req, { id }) => `user-${id}`, {}],
  [(_req, { id }) => String(id).toUpperCase(), {}],
  [(_req, { account }) => `u:${account?.id}`, { name: 'ada' }],
  [(_req, { tenant, id }) => (tenant ? `${tenant}/u:${id}` : `u:${id}`), {}],
  [(_req, { tenant, id }) => `${tenant}/u:${id}`, { tenant: 'acme' }],
  [() => 'user_undefined', null],
  [(_req, user) => `u:${'id' in user ? user.id : undefined}`, {}],
  [({ user }) => `user_${user.id}`, { name: 'ada' }],
  [(_req, user) => Reflect.apply(Account.prototype.key, user, []), new Account()],
])('an id that %o makes of %j is refused: all users without an id would share it', threats(69, 89), ([made, user]) => {
  const message = expect.stringMatching(/made of a missing user\.id\. .*userProfile/);
  expect(() => newId(made, user)).toThrow(expect.objectContaining({ option: 'grantId', message }));
  expect(() => newId(made, user)).toThrow(ConfigurationError);
});

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object | string, id: string]>([
  [(_req, { id }) => id, { id: '7' }, '7'],
  [(_req, { id }) => `user_${id}`, { id: 'undefined-behavior' }, 'user_undefined-behavior'],
  [(_req, { nickname, username }) => nickname ?? username, { username: 'nullsoft' }, 'nullsoft'],
  [(_req, { username }) => String(username).toLowerCase(), { username: 'NullSoft' }, 'nullsoft'],
  [(_req, { email }) => email, { email: 'ada@null.example' }, 'ada@null.example'],
  [(_req, { username }) => username, { username: 'null' }, 'null'],
  [(_req, user) => `user:${user}`, 'nullsoft', 'user:nullsoft'],
  [(_req, { username }) => username, { username: 'Nan' }, 'Nan'],
  // They tell users apart all the same.
  [(_req, { domain, id }) => `${domain}/${id}`, { id: '7' }, 'undefined/7'],
  [(_req, { domain, username }) => `${domain}/${username}`, { username: 'ada.l' }, 'undefined/ada.l'],
  [(_req, { domain, username }) => `${domain}/${username}`, { username: 'ada+l' }, 'undefined/ada+l'],
  [(_req, { domain, name }) => `${domain}/${name}`, { id: '7', name: 'ada' }, 'undefined/ada'],
  [() => 'tenant-7', { name: 'ada' }, 'tenant-7'],
])('an id that %o makes of %j is %s', ([made, user, id]) => {
  expect(newId(made, user)).toBe(id);
});

test.for(['undefined', 'UNDEFINED', 'NaN', '[object Object]'])('the text %j stands for no user', (text) => {
  const message = `grantId: expected an id that differs for each user, got the text ${text}: the value it was made of is missing`;
  expect(() => newId((_req, { id }) => id, { id: text })).toThrow(
    new ConfigurationError(message, { option: 'grantId' }),
  );
});
