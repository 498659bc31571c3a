import type { IncomingMessage } from 'node:http';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { checkCallback } from '../../src/login/callback-request.js';
import { finishLogin } from '../../src/login/finish-login.js';
import type { FrameTarget, PendingLogin } from '../../src/login/pending-logins.js';
import type { AnyVerify, Profile, VerifyCallback } from '../../src/login/verify.js';
import type { Runtime } from '../../src/runtime.js';
import { setCookies } from '../request/fixture.js';
import { type FaultyServer, json } from '../support/faulty-server.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import {
  accessTokenOf,
  beginLogin,
  CALLBACK_URL,
  callbackOf,
  cookiesOf,
  open,
  pairOf,
  type RequestParts,
  requestOf,
  startTokenEndpoint,
  tokenAnswer,
  warnings,
} from './fixture.js';

let service: FaultyServer;
let store: TroubledStore;
beforeEach(async () => {
  service = await startTokenEndpoint();
  store = new TroubledStore();
});

/** From now on the token endpoint answers so. */
const answerWith = (fields: object) => service.always(tokenAnswer(fields));

const openHere = (options: object = {}, verify?: AnyVerify) =>
  open({ authUrl: service.origin, baseUrl: service.origin, tokenStore: store, ...options }, verify);

interface Begun {
  readonly runtime: Runtime;
  readonly state: string;
  readonly cookies: string[];
}

const begin = (runtime: Runtime, changes: Partial<PendingLogin> = {}): Begun => ({
  runtime,
  ...beginLogin(runtime, changes),
});

/** The callback of a login, as it has come in. */
function callback({ runtime, state, cookies }: Begun, query = 'code=c', parts: RequestParts = {}, frame?: FrameTarget) {
  const url = `/callback?${query}&state=${state}`;
  const req = requestOf({ url, cookies, protocol: 'https', session: {}, ...parts });
  if (frame) runtime.frames.note(req, frame);
  const request = callbackOf(runtime, req);
  const finish = async () => {
    const checked = checkCallback(runtime, request);
    if (checked.kind !== 'checked') throw new Error('It was refused');
    return await finishLogin(runtime, request, checked);
  };
  return { ...request, finish };
}

/** Finishes a login. */
const finish = (begun: Begun, ...rest: [query?: string, parts?: RequestParts]) => callback(begun, ...rest).finish();

const REPLAYED = { kind: 'fail', reason: 'replayed', status: 403, info: expect.anything() };
const ABANDONED = {
  kind: 'fail',
  reason: 'abandoned',
  info: { message: 'The browser has dropped its request before the login ended.' },
  status: 499,
};
describe('a login', () => {
  test('ends with the tokens, the profile and its page, and its cookie goes', async () => {
    const begun = begin(openHere({ pkce: true }), { returnTo: '/page' });
    const request = callback(begun);
    expect(await request.finish()).toEqual({
      kind: 'success',
      tokens: expect.objectContaining({ accessToken: 'access', scope: ['project', 'tm'] }),
      verdict: { user: { provider: 'oauth-app', claims: {} }, info: undefined },
      returnTo: '/page',
    });
    expect(cookiesOf(request.res)).toEqual({ set: [], ended: ['login'] });
    expect(service.requests.map(({ body }) => JSON.parse(body.toString()))).toEqual([
      expect.objectContaining({ grant_type: 'authorization_code', code: 'c', redirect_uri: CALLBACK_URL }),
    ]);
  });

  test('sends its code verifier', async () => {
    const runtime = openHere();
    const usual = {
      redirectUri: CALLBACK_URL,
      returnTo: undefined,
      isConnection: false,
      isSilent: false,
      userMark: '',
    };
    const { state, cookies } = runtime.pendingLogins.begin(requestOf(), usual, true);
    await finish({ runtime, state, cookies: cookies.map(pairOf) });
    expect(JSON.parse(String(service.requests[0]?.body)).code_verifier).toMatch(/^[\w-]{43}$/);
  });

  test.for<[what: string, login: Partial<PendingLogin>, scope: string[]]>([
    ['those of the strategy', {}, ['project', 'tm']],
    ['its own', { scope: 'glossary tm' }, ['glossary', 'tm']],
  ])('has been granted the scopes that it has asked for, if the service names none: %s', async ([, login, scope]) => {
    answerWith({ scope: undefined });
    expect(await finish(begin(openHere(), login))).toMatchObject({ tokens: { scope } });
  });

  test('is over once, and a later callback is a replay', async () => {
    const begun = begin(openHere());
    await finish(begun);
    const again = callback(begun);
    expect(await again.finish()).toEqual(REPLAYED);
    expect(cookiesOf(again.res)).toEqual({ set: [], ended: [] });
    expect(service.requests).toHaveLength(1);
  });

  test('ends for the request that still waits, if the browser has dropped the first one', async () => {
    const begun = begin(openHere());
    const [first, left, sent, second, third] = [1, 2, 3, 4, 5].map(() => callback(begun));
    const ends = [first, left, sent, second, third].map((each) => each?.finish());
    first?.res.destroy();
    left?.req.socket.destroy();
    sent?.res.flushHeaders();
    const [ofFirst, ...others] = await Promise.all(ends);
    expect(ofFirst).toEqual(ABANDONED);
    expect(others).toEqual([REPLAYED, REPLAYED, expect.objectContaining({ kind: 'success' }), REPLAYED]);
    expect(second && cookiesOf(second.res).ended).toEqual(['login']);
    expect(service.requests).toHaveLength(1);
  });

  test('that the browser has dropped, and that was declined, is not left to others', async () => {
    const begun = begin(openHere());
    const first = callback(begun, 'error=access_denied');
    first.res.destroy();
    expect(await first.finish()).toMatchObject({ reason: 'declined' });
    expect(await finish(begun)).toEqual(REPLAYED);
  });

  test('spends no code on a response that somebody else has sent', async () => {
    const begun = begin(openHere());
    const { finish: end, res } = callback(begun);
    store.before = (method) => void (method === 'set' && res.end());
    await expect(end()).rejects.toMatchObject({ code: 'ERR_RESPONSE_SENT' });
    expect(service.requests).toEqual([]);
    expect(await finish(begun)).toEqual(REPLAYED);
  });

  test('that has ended after its response was sent sets no cookie', async () => {
    const { finish: end, res } = callback(begin(openHere(), { returnTo: '/page' }));
    service.always((socket, request) => {
      res.end();
      json({ error: 'invalid_grant' }, 400)(socket, request);
    });
    await expect(end()).rejects.toMatchObject({ name: 'TokenError' });
    expect(cookiesOf(res).set).toEqual([]);
  });

  test('whose response was sent before the browser went away is not left to others', async () => {
    const { finish: end, req, res } = callback(begin(openHere()));
    service.always((socket, request) => {
      res.end();
      req.socket.destroy();
      tokenAnswer()(socket, request);
    });
    expect(await end()).toMatchObject({ kind: 'success' });
  });

  test('that fails lets the callbacks that wait go on', async () => {
    answerWith({ access_token: undefined });
    const begun = begin(openHere());
    const [first, second] = [finish(begun), finish(begun)];
    await expect(first).rejects.toMatchObject({ name: 'TokenResponseError' });
    expect(await second).toEqual(REPLAYED);
  });
});

describe('a login that the service ends with an error', () => {
  test.for<[error: string, isSilent: boolean]>([
    ['access_denied', false],
    ['access_denied', true],
    ['consent_required', false],
  ])('%s, silent: %s, was declined', async ([error, isSilent]) => {
    const info = { message: 'The user declined authorization' };
    expect(await finish(begin(openHere(), { isSilent }), `error=${error}`)).toEqual({
      kind: 'fail',
      reason: 'declined',
      info,
    });
    expect(service.requests).toEqual([]);
  });

  test.for<[error: string, isSilent: boolean]>([
    ['consent_required', true],
    ...[
      ...['invalid_request', 'invalid_scope', 'server_error', 'temporarily_unavailable', 'unauthorized_client'],
      ...['unsupported_response_type', 'account_selection_required', 'interaction_required', 'login_required'],
    ].map((error): [string, boolean] => [error, false]),
  ])('%s, silent: %s, has failed', async ([error, isSilent]) => {
    const message = `The authorization endpoint returned the error ${error}.`;
    await expect(finish(begin(openHere(), { isSilent }), `error=${error}`)).rejects.toMatchObject({
      ...{ name: 'AuthorizationError', error, message },
    });
  });

  test('that nobody has registered shows nothing of its text', async () => {
    const message = 'The authorization endpoint returned an error that is not registered.';
    await expect(finish(begin(openHere()), 'error=Ada')).rejects.toMatchObject({ error: undefined, message });
  });
});

const byDone = (user: unknown, info?: unknown) => (_a: string, _r: string, _p: Profile, done: VerifyCallback) =>
  done(null, user, info);

describe('the user of a login', () => {
  test('is what verify says', async () => {
    const verify = vi.fn(byDone({ id: '7' }, 'info'));
    expect(await finish(begin(openHere({}, (a, r, p, d) => verify(a, r, p, d))))).toMatchObject({
      verdict: { user: { id: '7' }, info: 'info' },
    });
    expect(verify.mock.calls[0]?.slice(0, 3)).toEqual(['access', 'refresh', { provider: 'oauth-app', claims: {} }]);
  });

  test('is what verify makes of the request as well', async () => {
    const verify = (q: IncomingMessage, _a: string, _r: string, _p: Profile, done: VerifyCallback) =>
      done(null, { id: q.url });
    const begun = begin(openHere({ passReqToCallback: true }, verify));
    expect(await finish(begun)).toMatchObject({ verdict: { user: { id: `/callback?code=c&state=${begun.state}` } } });
  });

  test.for([false, null, undefined])('is denied by %s, for the reason that verify gives', async (user) => {
    const begun = begin(openHere({}, byDone(user, 'why')));
    expect(await finish(begun)).toEqual({ kind: 'fail', reason: 'denied', info: 'why' });
  });

  test('has an id, unless the application has no such property', async () => {
    await expect(finish(begin(openHere({}, byDone({ id: undefined }))))).rejects.toMatchObject({ option: 'verify' });
    expect(await finish(begin(openHere({}, byDone({ name: 'Ada' }))))).toMatchObject({ kind: 'success' });
  });

  test('has what userProfile adds, which calls the service with the tokens', async () => {
    const userProfile = async (client: { get(path: string): Promise<unknown> }, fields: object) => ({
      id: 7,
      of: await client.get('/user'),
      fields: Object.keys(fields).includes('access_token'),
    });
    const begun = begin(openHere({ userProfile }));
    service.next(tokenAnswer());
    service.next(json({ name: 'Ada' }));
    expect(await finish(begun)).toMatchObject({
      tokens: { subject: '7' },
      verdict: { user: { id: 7, of: { name: 'Ada' }, fields: true } },
    });
    expect(service.requests[1]?.headers.authorization).toBe('Bearer access');
  });

  test('without an id is warned of where verify may look for it', async () => {
    const warned = warnings();
    const verify = byDone({ id: '7' });
    await finish(begin(openHere()));
    await finish(begin(openHere({ userProfile: async () => ({}) }, verify)));
    answerWith({ access_token: accessTokenOf('7') });
    await finish(begin(openHere({}, verify)));
    expect(warned).toEqual([]);
    answerWith({});
    await finish(begin(openHere({}, verify)));
    expect(warned).toEqual([expect.objectContaining({ code: 'ERR_NO_PROFILE_ID' })]);
  });
});

describe('the page of a login', () => {
  const asked = { scope: 'project glossary tm', returnTo: '/page' };
  const declined = 'error=access_denied';
  test.for<[what: string, login: Partial<PendingLogin>, query: string, set: string[]]>([
    ['nothing of one that has all scopes', { returnTo: '/page' }, 'code=c', []],
    ['which scopes were not granted', asked, 'code=c', ['step-up']],
    ['that it was declined', { ...asked, isStepUp: true }, declined, ['return-to', 'step-up']],
    ['where the user wants to go', asked, declined, ['return-to']],
    ['nothing where there is none', { scope: 'glossary' }, declined, []],
  ])('is told %s', async ([, login, query, set]) => {
    const request = callback(begin(openHere(), login), query);
    await request.finish();
    expect(cookiesOf(request.res)).toEqual({ set, ended: ['login'] });
  });

  test('is told which scopes were not granted, of all that were asked for', async () => {
    const runtime = openHere();
    for (const [login, query, refused] of [
      [asked, 'code=c', ['glossary']],
      [{ ...asked, isStepUp: true }, declined, ['project', 'glossary', 'tm']],
    ] as const) {
      const request = callback(begin(runtime, login), query);
      await request.finish();
      const cookies = setCookies(request.res).map(pairOf);
      const isRefused = (scope: string) =>
        runtime.stepUps.isRefused(requestOf({ protocol: 'https', cookies }), request.res, [scope]);
      expect(['project', 'glossary', 'tm'].filter(isRefused)).toEqual(refused);
    }
  });

  test.for<[what: string, fail: () => void, query: string]>([
    ['it has failed', () => answerWith({ access_token: undefined }), 'code=c'],
    ['the service has ended it', () => undefined, 'error=server_error'],
  ])('is remembered if %s', async ([, fail, query]) => {
    fail();
    const request = callback(begin(openHere(), { ...asked, isStepUp: true }), query);
    await expect(request.finish()).rejects.toThrow();
    expect(cookiesOf(request.res).set).toEqual(query === 'code=c' ? ['return-to'] : ['return-to', 'step-up']);
  });

  test('is remembered for a user whom verify denies', async () => {
    const request = callback(begin(openHere({}, byDone(false)), asked));
    await request.finish();
    expect(cookiesOf(request.res).set).toEqual(['return-to']);
  });
});

describe('a popup', () => {
  const frame = { challenge: 'challenge', grantId: undefined };
  test.for<[what: string, login: Partial<PendingLogin>, query: string, outcome: string, refused: string[]]>([
    ['nothing was refused', {}, 'code=c', 'pending', []],
    ['which scopes were refused', { scope: 'project glossary' }, 'code=c', 'pending', ['glossary']],
    [
      'that a step-up was declined',
      { scope: 'glossary', isStepUp: true },
      'error=access_denied',
      'declined',
      ['glossary'],
    ],
    ['nothing of a login that was declined', { scope: 'glossary' }, 'error=access_denied', 'pending', []],
  ])('is told %s, and the tabs of its user nothing', async ([, login, query, outcome, refused]) => {
    const request = callback(begin(openHere(), { ...login, returnTo: '/page', frame }), query, {}, frame);
    await request.finish();
    expect(request.popup).toMatchObject({ outcome, refused });
    expect(cookiesOf(request.res)).toEqual({ set: [], ended: ['login'] });
  });

  test('is told which scopes were refused where the service has ended a step-up', async () => {
    const login = { scope: 'glossary', isStepUp: true, frame };
    const request = callback(begin(openHere(), login), 'error=server_error', {}, frame);
    await expect(request.finish()).rejects.toMatchObject({ name: 'AuthorizationError' });
    expect(request.popup).toMatchObject({ outcome: 'pending', refused: ['glossary'] });
  });
});

test('a callback that waits goes on when the first one has ended', async () => {
  const begun = begin(openHere());
  const [first, second] = [callback(begun), callback(begun)];
  const ended: string[] = [];
  let answer = (): void => undefined;
  service.always((socket, request) => {
    answer = () => tokenAnswer()(socket, request);
  });
  const ends = [first.finish().then(() => ended.push('first')), second.finish().then(() => ended.push('second'))];
  await until(() => expect(service.requests).toHaveLength(1));
  expect(ended).toEqual([]);
  answer();
  await Promise.all(ends);
});
