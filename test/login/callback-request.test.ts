import { describe, expect, test } from 'vitest';
import {
  type CallbackRoute,
  checkCallback,
  hasCallbackParameters,
  readCallbackQuery,
  refuseOwnerless,
} from '../../src/login/callback-request.js';
import type { Runtime } from '../../src/runtime.js';
import { threats } from '../support/threats.js';
import { byUser } from '../support/world.js';
import { beginLogin, CALLBACK_URL, callbackOf, open, type RequestParts, requestOf } from './fixture.js';

const malformed = { kind: 'malformed' };

test('reads code and state, in any order, among parameters of other kinds', () => {
  const expected = { kind: 'code', code: 'c d', state: 's' };
  expect(readCallbackQuery('/callback?code=c+d&state=s')).toEqual(expected);
  expect(readCallbackQuery('/callback?x=1&state=s&iss=https%3A%2F%2Fa&code=c%20d&session_state=y')).toEqual(expected);
});

test('reads an error and state, and nothing of descriptions', () => {
  const read = readCallbackQuery('/callback?error=e&state=s&error_description=%FF&error_uri=[');
  expect(read).toEqual({ kind: 'error', error: 'e', state: 's' });
});

test('takes the query alone, and all of it', () => {
  expect(readCallbackQuery('/callback?code=a?b&state=s')).toEqual({ kind: 'code', code: 'a?b', state: 's' });
  expect(readCallbackQuery('/code=a&state=s')).toEqual(malformed);
  expect(readCallbackQuery('')).toEqual(malformed);
});

test.each([
  ['4096 characters of code', `code=${'a'.repeat(4096)}&state=s`, true],
  ['one more', `code=${'a'.repeat(4097)}&state=s`, false],
  ['512 characters of state', `code=c&state=${'a'.repeat(512)}`, true],
  ['one more of state', `code=c&state=${'a'.repeat(513)}`, false],
  ['2048 characters of error', `error=${'a'.repeat(2048)}&state=s`, true],
  ['one more of error', `error=${'a'.repeat(2049)}&state=s`, false],
])('%s: well formed is %s', threats(2), (_what, query, fits) => {
  expect(readCallbackQuery(`/callback?${query}`).kind !== 'malformed').toBe(fits);
});

test.each([
  ...['/x?code=', '/x?state=a', '/x?error=a', '/x?code[]=a', '/x?a=b&state[x]=y'].map((url) => [url, true] as const),
  ...['/x', '/x?', '/x?returnTo=/code', '/code?x=code', '/x?codex=1', '/x?constructor=1'].map(
    (url) => [url, false] as const,
  ),
])('%s has something of a callback: %s', (url, expected) => expect(hasCallbackParameters(url)).toBe(expected));

test.each([
  ...['code=a&code=b&state=s', 'error=a&error=b', 'code=c&state=s&state=t', 'code=c&error=e&state=s', 'state=s'],
  ...['code=&state=s', 'error=', 'code=c&state=', 'code[]=c&state=s', 'code[x]=c&code=c&state=s', 'code=c&state[=s'],
  ...['__proto__=x&code=c&state=s', 'x[__proto__]=y&code=c', 'x=__proto__&code=c&state=s'],
  ...['code=%C3%A9&state=s', 'code=c&state=%0A', 'error=%00&state=s', 'error=a%FFb'],
])('the query %s is malformed', threats(2), (query) => {
  expect(readCallbackQuery(`/callback?${query}`)).toEqual(malformed);
});

test('an error of other characters than ASCII is one that nobody has registered', () => {
  const expected = { kind: 'error', error: 'unregistered_error', state: 's' };
  expect(readCallbackQuery('/callback?error=refus%C3%A9&state=s')).toEqual(expected);
});

const check = (runtime: Runtime, parts: RequestParts, route: Partial<CallbackRoute> = {}) =>
  checkCallback(runtime, callbackOf(runtime, requestOf({ session: {}, ...parts }), route));

const refused = (message: string, status = 403) => ({ kind: 'fail', reason: 'refused', info: { message }, status });
const UNKNOWN =
  'This login was not begun in this browser, has been finished already, or is older than ten minutes. Please log in again.';
const replayed = (message = UNKNOWN) => ({ ...refused(message), reason: 'replayed' });

describe('a callback', () => {
  test('of a login of this browser is that of its login', () => {
    const runtime = open();
    const { state, cookies } = beginLogin(runtime, { returnTo: '/page' });
    const login = expect.objectContaining({ redirectUri: CALLBACK_URL, returnTo: '/page' });
    for (const [query, answer] of [
      ['code=c', { kind: 'code', code: 'c', state }],
      ['error=e', { kind: 'error', error: 'e', state }],
    ] as const)
      expect(check(runtime, { url: `/callback?${query}&state=${state}`, cookies })).toEqual({
        kind: 'checked',
        ...{ state, login, answer },
      });
  });

  test('by another method is told which one it takes', () => {
    const runtime = open();
    const callback = callbackOf(runtime, requestOf({ method: 'POST', url: '/callback?code=c&state=s' }));
    expect(checkCallback(runtime, callback)).toEqual(refused('The callback takes GET requests.', 405));
    expect(callback.res.getHeader('Allow')).toBe('GET');
  });

  test('must not be prefetched', () => {
    const parts = { url: '/callback?code=c&state=s', headers: { 'sec-purpose': 'prefetch' } };
    const message = 'A callback must not be prefetched.';
    const error = { name: 'AuthorizationError', code: 'ERR_PREFETCH', status: 503, message };
    expect(() => check(open(), parts)).toThrow(expect.objectContaining(error));
  });

  test('with a malformed query is refused', () => {
    const refusal = refused('The parameters of the callback are malformed.', 400);
    expect(check(open(), { url: '/callback?code=' })).toEqual(refusal);
  });

  test.for<[what: string, parts: RequestParts, message: string]>([
    ['', {}, UNKNOWN],
    [' with a cookie that it has twice', { headers: { cookie: 'a=1; a=2' } }, UNKNOWN],
    [' in a frame', { headers: { 'sec-fetch-dest': 'iframe' } }, `${UNKNOWN} The application is in a frame, `],
  ])('of a login that the browser has not begun%s is refused', ([, parts, message]) => {
    const expected = replayed(message.endsWith(' ') ? expect.stringContaining(message) : message);
    for (const query of ['code=c', `code=c&state=${'A'.repeat(43)}`])
      expect(check(open(), { url: `/callback?${query}`, ...parts })).toEqual(expected);
  });

  test('of another strategy is left to that', () => {
    const { state, cookies } = beginLogin(open({ name: 'other' }));
    expect(check(open(), { url: `/callback?code=c&state=${state}`, cookies })).toEqual({
      ...replayed(),
      reason: 'foreign',
    });
  });

  test('of a login that was begun at another host is told so, unless its cookie has come', () => {
    const runtime = open();
    const { state, cookies } = beginLogin(runtime);
    runtime.hostMismatches.note(requestOf({ protocol: 'http' }), CALLBACK_URL, state);
    const url = `/callback?code=c&state=${state}`;
    expect(check(runtime, { url })).toEqual(replayed(expect.stringContaining('was begun over http')));
    expect(check(runtime, { url, cookies })).toMatchObject({ kind: 'checked' });
    expect(check(runtime, { url })).toEqual(replayed());
  });

  test('of a popup that nothing has noted is an error for the developer', () => {
    const runtime = open();
    const frame = { challenge: 'challenge', grantId: undefined };
    const { state, cookies } = beginLogin(runtime, { frame });
    const parts = { url: `/callback?code=c&state=${state}`, cookies };
    const message =
      'embedded(strategy, …) is mounted after the callback route: mount it after the session, and before apiClient(strategy) and the routes.';
    expect(() => check(runtime, parts)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError', code: 'ERR_MIDDLEWARE_ORDER', message }),
    );
    const req = requestOf(parts);
    runtime.frames.note(req, frame);
    expect(checkCallback(runtime, callbackOf(runtime, req))).toMatchObject({ kind: 'checked', login: { frame } });
  });
});

const OTHER_USER =
  'Another user is logged in now than when the connection of this account was begun. Please connect it again.';
const NOBODY =
  'Nobody is logged in, so this account cannot be connected: its grant would belong to nobody. Please log in first.';

describe('a connection', () => {
  const ada = { id: 'ada' };
  test.for<
    [
      what: string,
      begun: { isConnection: boolean; user?: object },
      isConnection: boolean,
      user: object | undefined,
      message: string | undefined,
    ]
  >([
    ['of the user who has begun it is theirs', { isConnection: true, user: ada }, true, ada, undefined],
    ['of nobody is nobody’s', { isConnection: true }, true, undefined, undefined],
    ['that was begun as a login is theirs', { isConnection: false, user: ada }, true, ada, undefined],
    ['of another user is refused', { isConnection: true, user: ada }, true, { id: 'bob' }, OTHER_USER],
    ['of a user who has left is refused', { isConnection: true, user: ada }, true, undefined, OTHER_USER],
    [
      'logs nobody in',
      { isConnection: true, user: ada },
      false,
      ada,
      'This account was to be connected, which logs nobody in. Please log in.',
    ],
    [
      'is not a login of another user, which goes on',
      { isConnection: false, user: ada },
      false,
      { id: 'bob' },
      undefined,
    ],
  ])('%s', ([, { isConnection, user: beginner }, isConnectionRoute, user, message]) => {
    const runtime = open();
    const userMark = runtime.grants.userMarkOf(requestOf({ user: beginner }), true);
    const { state, cookies } = beginLogin(runtime, { isConnection, userMark });
    const parts = { url: `/callback?code=c&state=${state}`, cookies, user };
    const checked = check(runtime, parts, { isConnection: isConnectionRoute });
    expect(checked).toEqual(message ? refused(message) : expect.objectContaining({ kind: 'checked' }));
  });

  test('needs a user whom something tells from others', () => {
    const runtime = open();
    const { state, cookies } = beginLogin(runtime);
    const parts = { url: `/callback?code=c&state=${state}`, cookies, user: {} };
    expect(() => check(runtime, parts, { isConnection: true })).toThrow(
      expect.objectContaining({ code: 'ERR_NO_USER_ID' }),
    );
  });

  test('under an id of the application needs a user', () => {
    const runtime = open({ grantId: byUser });
    const { state, cookies } = beginLogin(runtime);
    const parts = { url: `/callback?code=c&state=${state}`, cookies };
    expect(check(runtime, parts, { isConnection: true })).toEqual(refused(NOBODY));
    expect(check(runtime, parts)).toMatchObject({ kind: 'checked' });
  });

  test('needs a user with an id where that is the id of the grant', () => {
    const owner = (options: object, user?: object) => refuseOwnerless(open(options).grants, requestOf({ user }));
    expect([owner({}), owner({ grantId: byUser }, ada)]).toEqual([undefined, undefined]);
    expect(owner({ grantId: byUser })).toEqual(refused(NOBODY));
    expect(() => owner({ grantId: byUser }, {})).toThrow(expect.objectContaining({ option: 'grantId' }));
  });
});

const OTHER = 'https://app.example/connected';

test.for<[redirectUri: string, own: string | undefined, url: string, leads: boolean]>([
  [CALLBACK_URL, undefined, '/elsewhere', true],
  [CALLBACK_URL, CALLBACK_URL, '/elsewhere', true],
  [CALLBACK_URL, OTHER, '/callback', false],
  [OTHER, CALLBACK_URL, '/connected', false],
  [OTHER, OTHER, '/elsewhere', true],
  [OTHER, 'http://app.example/connected', '/connected', false],
  [OTHER, '/connected', '/elsewhere', true],
  [OTHER, '/Connected/', '/elsewhere', true],
  [OTHER, '/other', '/connected', false],
  [OTHER, '/x/connected', '/x/connected', false],
  [OTHER, undefined, '/connected', true],
  [OTHER, undefined, '/Connected/', true],
  [OTHER, undefined, '/prefix/connected', true],
  [OTHER, undefined, '/connected/further', false],
  [OTHER, undefined, '/other', false],
  ['https://app.example/prefix/connected', undefined, '/connected', true],
  ['https://app.example/connected/further', undefined, '/connected', false],
])('the redirect URL %s leads to a route with the callbackURL %s at %s: %s', ([redirectUri, own, url, leads]) => {
  const runtime = open();
  const { state, cookies } = beginLogin(runtime, { redirectUri });
  const checked = check(runtime, { url: `${url}?code=c&state=${state}`, cookies }, { callbackURL: own });
  expect(checked).toMatchObject(leads ? { kind: 'checked' } : { reason: 'replayed' });
});
