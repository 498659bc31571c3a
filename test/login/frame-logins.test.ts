import { createHash } from 'node:crypto';
import session from 'express-session';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { randomGrantId } from '../../src/grants/grant.js';
import type { FrameTarget } from '../../src/login/pending-logins.js';
import type { Runtime } from '../../src/runtime.js';
import { tokens, withoutLock } from '../refresh/fixture.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { addSession, CALLBACK_URL, open, pairOf, requestOf, soon, storedSession } from './fixture.js';

let clock: TestClock;
let store: TroubledStore;
let runtime: Runtime;
beforeEach(() => {
  clock = new TestClock();
  store = new TroubledStore();
  runtime = another();
});

/** Another process of the application. */
const another = (options: object = {}) => open({ clock: clock.now, tokenStore: store, ...options });
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
const TARGET: FrameTarget = { challenge: challengeOf('verifier'), grantId: undefined };

describe('the handle of a frame', () => {
  test.for<[grantId: string | undefined, scope: string | undefined, isStepUp: boolean]>([
    [undefined, undefined, false],
    ['grant', 'project tm', true],
  ])('tells a popup its grant %s and its scope %s, in any process', ([grantId, scope, isStepUp]) => {
    const { verifier, handle } = runtime.frames.create(grantId, scope, isStepUp);
    expect(verifier).toMatch(/^[\w-]{43}$/);
    expect(another().frames.read(handle)).toEqual({ challenge: challengeOf(verifier), grantId, scope, isStepUp });
  });

  test.for(['', 'nonsense'])('is not %j', (handle) => expect(runtime.frames.read(handle)).toBeUndefined());

  test('is neither a code nor a list of refused scopes, and these are no handles', () => {
    const { frames } = runtime;
    const { handle } = frames.create(undefined, undefined, false);
    const code = frames.issue(requestOf({ session: {} }), TARGET);
    const refused = frames.sealRefused({ target: TARGET, outcome: 'stored', refused: ['tm'] }) ?? '';
    expect([frames.read(code), frames.read(refused), frames.readRefused(handle)]).toEqual([undefined, undefined, []]);
  });
});

test('the frame of a callback is that of its login', () => {
  const login = { redirectUri: CALLBACK_URL, returnTo: undefined, isConnection: false, isSilent: false, userMark: '' };
  const { state, cookies } = runtime.pendingLogins.begin(requestOf(), { ...login, frame: TARGET }, false);
  const targetAt = (url: string) => runtime.frames.targetOf(requestOf({ url, cookies: cookies.map(pairOf) }));
  expect(targetAt(`/callback?code=c&state=${state}`)).toEqual(TARGET);
  for (const url of ['/callback', `/callback?state=${'A'.repeat(43)}`]) expect(targetAt(url)).toBeUndefined();
});

test('a popup is known by its request', () => {
  const [req, other] = [requestOf(), requestOf()];
  const popup = runtime.frames.note(req, TARGET);
  expect(popup).toEqual({ target: TARGET, outcome: 'pending', refused: [] });
  expect([runtime.frames.popupOf(req), runtime.frames.popupOf(other)]).toEqual([popup, undefined]);
});

test('scopes that were refused count for a minute, in any process', () => {
  const sealed = runtime.frames.sealRefused({ target: TARGET, outcome: 'stored', refused: ['project', 'tm'] }) ?? '';
  const { frames } = another();
  clock.advance(59.999);
  expect(frames.readRefused(sealed)).toEqual(['project', 'tm']);
  clock.advance(0.001);
  expect(frames.readRefused(sealed)).toEqual([]);
  expect(frames.readRefused('nonsense')).toEqual([]);
  expect(frames.sealRefused({ target: TARGET, outcome: 'stored', refused: [] })).toBeUndefined();
});

test.for<[expected: string | undefined, outcome: string]>([
  [undefined, 'stored'],
  ['grant', 'stored'],
  ['another', 'other'],
])('a popup for the grant %s whose login stores the grant `grant` ends as %s', ([grantId, outcome]) => {
  const popup = runtime.frames.note(requestOf(), { ...TARGET, grantId });
  const admit = () => runtime.frames.admit(popup, 'grant');
  if (outcome === 'stored') admit();
  else {
    const message = 'Another user has logged in than the user of the frame. Nothing was stored.';
    expect(admit).toThrow(
      expect.objectContaining({ name: 'AuthorizationError', code: 'ERR_OTHER_ACCOUNT', status: 403, message }),
    );
  }
  expect(popup.outcome).toBe(outcome);
});

describe('a code', () => {
  const CONTENT = { passport: { user: '7' }, cart: ['book'] };
  const issue = (content: object = CONTENT) => runtime.frames.issue(requestOf({ session: content }), TARGET);
  const take = (code: string, { frames } = runtime, verifier = 'verifier') =>
    frames.take(requestOf({ session: {} }), code, verifier);

  test('gives the frame a new session with its content, which is saved', async () => {
    const sessions = new session.MemoryStore();
    const req = requestOf();
    const before = await addSession(req, sessions, { passport: { user: '8' }, old: true });
    expect(await another().frames.take(req, issue(), 'verifier')).toBe(true);
    const { cookie: _settings, ...content } = Reflect.get(req, 'session');
    expect(content).toEqual(CONTENT);
    const id = Reflect.get(req, 'sessionID');
    expect(id).not.toBe(before.id);
    expect([await storedSession(sessions, id), await storedSession(sessions, before.id)]).toEqual([CONTENT, undefined]);
  });

  test('gives its content to a session without methods, in place of what that has', async () => {
    const session: object = { old: true };
    expect(await runtime.frames.take(requestOf({ session }), issue(), 'verifier')).toBe(true);
    expect(session).toEqual(CONTENT);
  });

  test('is taken once, in any process', async () => {
    const code = issue();
    expect([await take(code), await take(code), await take(code, another())]).toEqual([true, false, false]);
  });

  test('is used up neither by another verifier nor by a request without a session', async () => {
    const code = issue();
    expect(await take(code, runtime, 'other')).toBe(false);
    expect(await runtime.frames.take(requestOf(), code, 'verifier')).toBe(false);
    expect(await take('nonsense')).toBe(false);
    expect(await take(code)).toBe(true);
  });

  test.for([
    [59_999, true],
    [60_000, false],
    [-60_000, true],
    [-60_001, false],
  ] as const)('after %i ms of any host is taken: %s', async ([ms, isTaken]) => {
    const code = issue();
    clock.advance(ms / 1000);
    expect(await take(code)).toBe(isTaken);
  });

  test('that was taken is known for five minutes after it has ended', async () => {
    const expiresAt = clock.now() + 60_000 + 300_000;
    const ids: string[] = [];
    store.before = (_method, id) => void ids.push(id);
    await take(issue());
    const mark = ids.find((id) => id.startsWith('login:')) ?? '';
    expect(await store.inner.get(mark)).toMatchObject({ expiresAt });
  });

  test('takes the place of the grant that the frame had', async () => {
    const manager = runtime.managers.only();
    const [former, next] = [randomGrantId(), randomGrantId()];
    for (const [had, gets, isKept] of [
      [former, next, false],
      [next, next, true],
    ] as const) {
      for (const id of [former, next]) await manager.put(id, tokens('a'));
      const session = { 'oauth-app': had };
      const code = issue({ 'oauth-app': gets });
      expect(await runtime.frames.take(requestOf({ session }), code, 'verifier')).toBe(true);
      expect(session).toEqual({ 'oauth-app': gets });
      await soon(async () => expect(await manager.has(had)).toBe(isKept));
      expect(await manager.has(gets)).toBe(true);
    }
  });

  test('fails where the session cannot be saved, or the code not be marked', async () => {
    const sessions = new session.MemoryStore();
    const req = requestOf();
    await addSession(req, sessions);
    sessions.set = (_id, _session, done) => done?.(new Error('The store is down'));
    await expect(runtime.frames.take(req, issue(), 'verifier')).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' });
    store.fail();
    await expect(take(issue())).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE' });
  });
});

describe('the grant of a code', () => {
  let grantId: string;
  let code: string;
  const has = () => runtime.managers.only().has(grantId);
  beforeEach(async () => {
    stopTime();
    grantId = randomGrantId();
    await runtime.managers.only().put(grantId, tokens('a'));
    code = runtime.frames.issue(requestOf({ session: { 'oauth-app': grantId } }), TARGET);
  });
  /** Lets time pass. @param suspendedMs Time that the clock shows and timers do not. */
  async function pass(ms: number, suspendedMs = 0): Promise<void> {
    clock.advance((ms + suspendedMs) / 1000);
    await vi.advanceTimersByTimeAsync(ms);
  }

  test('is discarded after two minutes if no frame has taken it', async () => {
    await pass(119_999);
    expect(await has()).toBe(true);
    await pass(1);
    expect(await has()).toBe(false);
  });

  test.for(['this process', 'another one'])('stays if a frame has taken it, in %s', async (process) => {
    const { frames } = process === 'this process' ? runtime : another();
    expect(await frames.take(requestOf({ session: {} }), code, 'verifier')).toBe(true);
    await pass(120_000);
    expect(await has()).toBe(true);
  });

  test.for([
    [59_999, false],
    [60_000, true],
  ] as const)('after a pause of the process of %i ms stays: %s', async ([suspendedMs, stays]) => {
    await pass(120_000, suspendedMs);
    expect(await has()).toBe(stays);
  });

  test('stays while the store fails', async () => {
    store.fail();
    await pass(120_000);
    store.recover();
    expect(await has()).toBe(true);
  });

  test.for<[what: string, options: () => object, content: object]>([
    ['of a store without locks', () => ({ tokenStore: withoutLock(store) }), { 'oauth-app': 'A'.repeat(43) }],
    ['whose id is the application’s own', () => ({}), { 'oauth-app': '7' }],
    ['that there is none of', () => ({}), {}],
  ])('is not looked for later: one %s', ([, options, content]) => {
    const before = vi.getTimerCount();
    another(options()).frames.issue(requestOf({ session: content }), TARGET);
    expect(vi.getTimerCount()).toBe(before);
  });
});
