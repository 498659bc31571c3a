import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import {
  type AnyVerify,
  callVerify,
  mergedProfile,
  type Profile,
  profileOf,
  refuseUserWithoutId,
  type VerifyCallback,
  warnOfMissingId,
} from '../../src/login/verify.js';
import { tokens } from '../refresh/fixture.js';
import { settled, warnings } from './fixture.js';

const params = { access_token: 'access-a', extra: 1 };
const tokenSet = tokens('a', { subject: '7', params });
const profile: Profile = { provider: 'oauth-app', id: '7', claims: {} };
const req = new IncomingMessage(new Socket());

const call = (verify: AnyVerify, request?: IncomingMessage) => settled(callVerify(verify, request, tokenSet, profile));

test('verify gets the tokens, the profile and done; with one parameter more, the token response before the profile', async () => {
  const four = (...[accessToken, refreshToken, given, done]: [string, string, Profile, VerifyCallback]) =>
    done(null, [accessToken, refreshToken, given], 'info');
  // The arity of a function with a rest parameter is 0, as that of a wrapper.
  expect(await call(four)).toEqual({ user: ['access-a', 'refresh-a', profile], info: 'info' });
  const five = (a: string, r: string, given: object, p: Profile, done: VerifyCallback) => done(null, [a, r, given, p]);
  expect((await call(five)).user).toEqual(['access-a', 'refresh-a', params, profile]);
  const withRequest = (q: object, a: string, r: string, p: Profile, done: VerifyCallback) =>
    done(null, [q === req, a, r, p]);
  expect((await call(withRequest, req)).user).toEqual([true, 'access-a', 'refresh-a', profile]);
  const six = (q: object, a: string, r: string, given: object, p: Profile, done: VerifyCallback) =>
    done(null, [q === req, a, r, given, p]);
  expect((await call(six, req)).user).toEqual([true, 'access-a', 'refresh-a', params, profile]);
});

test('the first answer of verify counts, and an error in any form', async () => {
  const fault = new Error('of verify');
  const twice = (_a: string, _r: string, _p: Profile, done: VerifyCallback) => {
    done(null, 'first');
    done(fault);
  };
  expect((await call(twice)).user).toBe('first');
  const forms: AnyVerify[] = [
    (_a: string, _r: string, _p: Profile, done: VerifyCallback) => done(fault),
    (_a: string, _r: string, _p: Profile, _done: VerifyCallback) => {
      throw fault;
    },
    (_a: string, _r: string, _p: Profile, _done: VerifyCallback) => Promise.reject(fault),
  ];
  for (const verify of forms) await expect(call(verify)).rejects.toBe(fault);
});

test('an async verify may answer after it has returned', async () => {
  const verify = async (_a: string, _r: string, _p: Profile, done: VerifyCallback) =>
    void setImmediate(done, null, 'user');
  expect((await call(verify)).user).toBe('user');
});

test.for<[what: string, verify: AnyVerify, request: IncomingMessage | undefined, parameters: string]>([
  ['returns a user', (_a: string, _r: string, { id }: Profile) => ({ id }), undefined, ''],
  ['has one parameter', async (accessToken: string) => ({ id: accessToken }), undefined, ''],
  ['resolves to a user', async (_a: string, _r: string, { id }: Profile) => ({ id }), undefined, ''],
  ['resolves to one, with the request', async (_q: object, _a: string, _r: string, p: Profile) => p, req, 'req, '],
])('a verify that %s and knows no done is told to call it', async ([, verify, request, parameters]) => {
  const message = `verify: expected a function that calls done(error, user), got one without that parameter. What it returns is not used. Write (${parameters}accessToken, refreshToken, profile, done).`;
  await expect(call(verify, request)).rejects.toEqual(new ConfigurationError(message, { option: 'verify' }));
});

test('a verify that takes done from its arguments calls it when it likes', async () => {
  // Its length is 3.
  const verify = (_a: string, _r: string, _p: Profile, ...[done]: VerifyCallback[]) =>
    void setImmediate(() => done?.(null, 'user'));
  expect((await call(verify)).user).toBe('user');
});

test.for<[what: string, verify: AnyVerify]>([
  ['whose parameters are not to be seen', (...args: unknown[]) => later(args.at(-1))],
  ['that takes done', (_a: string, _r: string, _p: Profile, done: VerifyCallback) => later(done)],
  ['with the token response', (_a: string, _r: string, _t: object, _p: Profile, done: VerifyCallback) => later(done)],
])('a verify %s may return something, and call done later', async ([, verify]) => {
  expect((await call(verify)).user).toBe('user');
});

function later(done: unknown): string {
  setImmediate(done as VerifyCallback, null, 'user');
  return 'what nobody reads';
}

test('a profile without an id is warned of once', () => {
  const [warned, known] = [warnings(), new Set<string>()];
  for (let times = 0; times < 2; times++) warnOfMissingId(known);
  const message = expect.stringMatching(/^verify got a profile without an id: .* userProfile .* returns \{ id \}\.$/);
  expect(warned).toEqual([{ code: 'ERR_NO_PROFILE_ID', message }]);
});

test('a user has an id, or no such property', () => {
  for (const user of [{ id: '7' }, { id: 0 }, { _id: '7' }, { name: 'Ada' }, 'ada', 7, null, undefined, false])
    expect(() => refuseUserWithoutId(user)).not.toThrow();
  // Another key tells users apart.
  expect(() => refuseUserWithoutId({ id: undefined, username: 'ada' })).not.toThrow();
  for (const [id, kind] of [
    [undefined, 'undefined'],
    [null, 'null'],
  ] as const)
    expect(() => refuseUserWithoutId({ id })).toThrow(
      expect.objectContaining({
        option: 'verify',
        message: expect.stringMatching(
          `^verify: expected a user with an id, got one whose id is ${kind}: .*userProfile`,
        ),
      }),
    );
});

test('a profile says what the token says', () => {
  const claims = { sub: '7', domain: 'acme' };
  const facts = { claims, subject: '7', organizationDomain: 'acme' };
  expect(profileOf('name', tokens('a', facts))).toStrictEqual({
    provider: 'name',
    id: '7',
    organizationDomain: 'acme',
    claims,
  });
  expect(profileOf('name', tokens('a'))).toStrictEqual({ provider: 'name', claims: {} });
  // A token with claims, and without a domain, says that there is no organization.
  const none = profileOf('name', tokens('a', { claims: { sub: '7' } }));
  expect(none).toStrictEqual({ provider: 'name', organizationDomain: undefined, claims: { sub: '7' } });
  const ofProfile = profileOf('name', tokens('a', { organizationDomain: 'acme' }));
  expect(ofProfile).toStrictEqual({ provider: 'name', organizationDomain: 'acme', claims: {} });
  const polluting = JSON.parse('{"__proto__":{"admin":true},"sub":"7"}');
  expect(Object.keys(profileOf('name', tokens('a', { claims: polluting })).claims)).toEqual(['sub']);
});

test('what userProfile returns is added to the profile, and changes nothing of it', () => {
  expect(mergedProfile(profile, { id: '8', email: 'a@b.example' })).toEqual({ ...profile, email: 'a@b.example' });
  const polluted = mergedProfile(profile, JSON.parse('{"__proto__":{"admin":true}}'));
  expect([polluted.admin, Object.getPrototypeOf(polluted)]).toEqual([undefined, Object.prototype]);
  for (const [more, kind] of [
    [null, 'null'],
    ['text', 'string'],
    [undefined, 'undefined'],
  ] as const) {
    const message = `userProfile: expected an object to merge into the profile, got ${kind}`;
    expect(() => mergedProfile(profile, more)).toThrow(new ConfigurationError(message, { option: 'userProfile' }));
  }
});
