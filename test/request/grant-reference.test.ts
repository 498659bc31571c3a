import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { GrantManagers } from '../../src/request/grant-managers.js';
import { RequestGrants, StrategyName } from '../../src/request/grant-reference.js';
import { threats } from '../support/threats.js';

type User = Readonly<Record<string, string & { readonly id: string }>>;

const managers = new GrantManagers(undefined, () => expect.unreachable());

/** Returns the id for the grant of a user. The user is `req.user` too. */
function newId(grantId: (req: { readonly user: User }, user: User) => unknown, user: object): string {
  const req = Object.assign(new IncomingMessage(new Socket()), { user, session: { account: { id: '9' } } });
  const strategyName = new StrategyName('oauth-app', 'of this test');
  try {
    return new RequestGrants({ name: 'oauth-app', grantId: grantId as never, strategyName }, managers).newId(req, user);
  } finally {
    strategyName.release();
  }
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

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object]>([
  [(_req, { id }) => `user_${id}`, { name: 'ada' }],
  [(_req, { id }) => `user_${id}`, { id: null }],
  [(_req, { id }) => `crowdin${id}`, {}],
  [(_req, { id }) => `${id}_svc`, {}],
  [(_req, { id }) => `user-${id}`, {}],
  [(_req, { id }) => String(id), {}],
  [(_req, { email }) => String(email).toUpperCase(), { id: '7' }],
  [(_req, { tenant, id }) => `${tenant}/${id}`, { id: '7' }],
  [(_req, { account }) => `a${account?.id}`, { account: { name: 'x' } }],
  [({ user }) => `user_${user.id}`, { name: 'ada' }],
  [(_req, user) => `${user.name}-${user.id}`, new Account()],
])(
  'an id that %o makes of %j, where a value is missing, is refused: all without it would share it',
  threats(69, 89),
  ([made, user]) => {
    const error = expect.objectContaining({
      option: 'grantId',
      message: expect.stringMatching(/made of a missing value, such as user\.id/),
    });
    expect(() => newId(made, user)).toThrow(error);
    expect(() => newId(made, user)).toThrow(ConfigurationError);
  },
);

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object, id: string]>([
  [(_req, { id }) => id, { id: '7' }, '7'],
  [(_req, { id }) => `user_${id}`, { id: 'undefined-behavior' }, 'user_undefined-behavior'],
  [(_req, { nickname, username }) => nickname ?? username, { username: 'nullsoft' }, 'nullsoft'],
  [(_req, { username }) => username, { username: 'null' }, 'null'],
  // Missing, and no part of the id.
  [(_req, { id, username }) => (id ? `${id}` : `${username}-null`), { username: 'ada' }, 'ada-null'],
  [(_req, user) => `${user.name}-null`, new Account(), 'ada-null'],
  [({ user }) => `${user.name}-null`, Object.freeze({ name: 'ada' }), 'ada-null'],
])('an id that %o makes of %j is %s', ([made, user, id]) => {
  expect(newId(made, user)).toBe(id);
});

test.for(['undefined', 'UNDEFINED', 'NaN', '[object Object]'])('the text %j stands for no user', (text) => {
  const message = `grantId: expected an id that differs for each user, got the text ${text}: the value it was made of is missing`;
  expect(() => newId((_req, { id }) => id, { id: text })).toThrow(
    new ConfigurationError(message, { option: 'grantId' }),
  );
});

test('an object that a stand-in cannot stand before is judged by the text', () => {
  const byMethod = (end: string) => (_req: unknown, user: object) =>
    `${Reflect.apply(Account.prototype.key, user, [])}${end}`;
  expect(() => newId(byMethod(''), new Account())).toThrow(/made of a missing value/);
  expect(newId(byMethod('s'), new Account())).toBe('ada-undefineds');
});
