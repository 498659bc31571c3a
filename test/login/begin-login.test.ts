import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  type AuthorizationRequestSettings,
  authorizationRequest,
  beginLogin,
  furtherParams,
  HostMismatches,
  type LoginOptions,
} from '../../src/login/begin-login.js';
import { setCookies } from '../request/fixture.js';
import { CALLBACK_URL, exchangeOf, open, pairOf, type RequestParts, requestOf, warnings } from './fixture.js';

const SETTINGS = {
  authUrl: 'https://accounts.example',
  authorizationPath: '/authorize',
  clientID: 'the client',
  scopeSeparator: ' ',
};
const OF_CLIENT = 'client_id=the+client&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback&response_type=code';

test.for<[changes: Partial<AuthorizationRequestSettings>, scope: string, url: string, isSilent: boolean]>([
  [{}, 'a b', `https://accounts.example/authorize?${OF_CLIENT}&scope=a+b`, false],
  [{}, '', `https://accounts.example/authorize?${OF_CLIENT}`, false],
  [{ scopeSeparator: ',' }, 'a b c', `https://accounts.example/authorize?${OF_CLIENT}&scope=a%2Cb%2Cc`, false],
  [{ authorizationPath: '/a?prompt=none' }, '', `https://accounts.example/a?prompt=none&${OF_CLIENT}`, true],
  [
    { authorizationPath: 'https://other.example/a?prompt=login' },
    '',
    `https://other.example/a?prompt=login&${OF_CLIENT}`,
    false,
  ],
])('with %j and the scope %j the authorization request is %s', ([changes, scope, url, isSilent]) => {
  expect(authorizationRequest({ ...SETTINGS, ...changes }, CALLBACK_URL, scope)).toEqual({ url, isSilent });
});

test.for<[params: Record<string, string>, text: string, isSilent: boolean]>([
  [{}, '', false],
  [{ audience: 'https://api.example', x: 'a b' }, '&audience=https%3A%2F%2Fapi.example&x=a+b', false],
  [{ prompt: 'none' }, '&prompt=none', true],
  [{ prompt: 'login none' }, '&prompt=login+none', true],
  [{ prompt: 'nonesuch' }, '&prompt=nonesuch', false],
])('the parameters %j are added as %j', ([params, text, isSilent]) => {
  expect(furtherParams(params)).toEqual({ text, isSilent });
});

/** Begins a login. Returns the parameters of its authorization request, and what the callback finds of it. */
function begin(parts: RequestParts = {}, options: LoginOptions = {}, runtime = open(), callbackURL = CALLBACK_URL) {
  const { req, res } = exchangeOf(parts);
  const url = beginLogin(runtime, req, res, callbackURL, options);
  const { state = '', ...params } = Object.fromEntries(new URL(url ?? 'http://none.example').searchParams);
  const cookies = setCookies(res);
  const login = runtime.pendingLogins.find(requestOf({ cookies: cookies.map(pairOf) }), state);
  return { url, state, params, cookies, login };
}

const USUAL = {
  client_id: 'client',
  redirect_uri: CALLBACK_URL,
  response_type: 'code',
  scope: 'project tm',
};

describe('a login', () => {
  test('asks for the scope of its strategy, and is found by its state', () => {
    const { url, state, params, cookies, login } = begin();
    expect(url).toMatch(/^https:\/\/accounts\.example\/oauth\/authorize\?.*&scope=project\+tm&state=[\w-]{43}$/);
    expect(params).toEqual(USUAL);
    expect(cookies).toHaveLength(1);
    expect(login).toMatchObject({
      redirectUri: CALLBACK_URL,
      returnTo: undefined,
      isConnection: false,
      isSilent: false,
      isStepUp: false,
      scope: undefined,
      userMark: '',
      codeVerifier: undefined,
      frame: undefined,
    });
    expect(begin().state).not.toBe(state);
  });

  test('has a challenge of its code verifier with PKCE', () => {
    const { params, login } = begin({}, {}, open({ pkce: true }));
    expect(params).toEqual({
      ...USUAL,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(login?.codeVerifier).toMatch(/^[\w-]{43}$/);
  });

  test.for<[what: string, options: LoginOptions, params: object, login: object]>([
    ['a scope', { scope: ['glossary'] }, { scope: 'glossary' }, { scope: 'glossary' }],
    ['the scope of the strategy', { scope: 'project tm' }, {}, { scope: undefined }],
    ['parameters', { authorizationParams: { prompt: 'none' } }, { prompt: 'none' }, { isSilent: true }],
    ['parameters that depend on the request', { authorizationParams: () => ({ x: '1' }) }, { x: '1' }, {}],
    ['that it connects an account', { assignProperty: 'account' }, {}, { isConnection: true }],
  ])('of a route that sets %s has it', ([, options, params, login]) => {
    const begun = begin({}, options);
    expect(begun.params).toEqual({ ...USUAL, ...params });
    expect(begun.login).toMatchObject(login);
  });

  test.for<[what: string, options: LoginOptions, option: string]>([
    ['scope', { scope: 7 }, 'scope'],
    ['parameters', { authorizationParams: { state: 'x' } }, 'authorizationParams'],
    ['function of parameters', { authorizationParams: async () => ({}) }, 'authorizationParams'],
  ])('of a route with a wrong %s is not begun', ([, options, option]) => {
    expect(() => begin({}, options)).toThrow(expect.objectContaining({ option }));
  });

  test.for<[what: string, ofStrategy: unknown, ofRoute: unknown, params: object, isSilent: boolean]>([
    ['its own', { x: '1' }, undefined, { x: '1' }, false],
    ['its own, made for the request', ({ url }: { url: string }) => ({ x: url }), undefined, { x: '/login' }, false],
    ['those of the route before', { x: '1', y: '2' }, { x: '3' }, { x: '3', y: '2' }, false],
    [
      'those of the route before, made for the request',
      () => ({ x: '1', y: '2' }),
      { x: '3' },
      { x: '3', y: '2' },
      false,
    ],
    ['a prompt', { prompt: 'none' }, undefined, { prompt: 'none' }, true],
  ])('of a strategy with parameters has %s', ([, ofStrategy, ofRoute, params, isSilent]) => {
    const begun = begin({}, { authorizationParams: ofRoute }, open({ authorizationParams: ofStrategy }));
    expect(begun.params).toEqual({ ...USUAL, ...params });
    expect(begun.login?.isSilent).toBe(isSilent);
  });

  test('is silent where the address of the authorization endpoint says so', () => {
    expect(begin({}, {}, open({ authorizationPath: '/authorize?prompt=none' })).login?.isSilent).toBe(true);
  });

  test('has the redirect URL that its route, and the request, make', () => {
    const runtime = open();
    for (const scope of [undefined, 'other']) {
      const begun = begin({ protocol: 'https' }, { scope }, runtime, '/connected');
      expect(begun.params).toEqual({
        ...USUAL,
        scope: scope ?? USUAL.scope,
        redirect_uri: 'https://app.example/connected',
      });
      expect(begun.login?.redirectUri).toBe('https://app.example/connected');
    }
    expect(begin({ headers: { host: undefined } }, {}, runtime, '/connected')).toMatchObject({
      url: undefined,
      cookies: [],
    });
  });

  test.for<[url: string, remembered: string | undefined, returnTo: string | undefined]>([
    ['/login', undefined, undefined],
    ['/login', '/remembered', '/remembered'],
    ['/login?returnTo=/page', '/remembered', '/page'],
    ['/login?returnTo=/page&x=1', undefined, '/page'],
    ['/login?returnTo=//evil.example', '/remembered', '/'],
    ['/login?returnTo=/a&returnTo=/b', '/remembered', '/'],
    ['/login&returnTo=/page', undefined, undefined],
  ])('at %s, with the page %s remembered, leads to %s', ([url, remembered, returnTo]) => {
    const runtime = open();
    const visit = exchangeOf({ url: '/', protocol: 'https' });
    if (remembered) runtime.returnCookie.remember(visit.req, visit.res, remembered);
    const { login, cookies } = begin(
      { url, protocol: 'https', cookies: setCookies(visit.res).map(pairOf) },
      {},
      runtime,
    );
    expect(login?.returnTo).toBe(returnTo);
    // No later login leads to the remembered page.
    expect(cookies.filter((line) => line.includes('return-to'))).toEqual(
      remembered ? [expect.stringContaining('Max-Age=0')] : [],
    );
  });

  test('asks for the scopes that its page needs, once', () => {
    const runtime = open();
    const visit = exchangeOf({ url: '/page', protocol: 'https' });
    runtime.stepUps.ask(visit.req, visit.res, '/page', ['glossary'], undefined);
    const login = { url: '/login?returnTo=/page', protocol: 'https', cookies: setCookies(visit.res).map(pairOf) };
    const begun = begin(login, { scope: 'other' }, runtime);
    expect(begun.params.scope).toBe('glossary');
    expect(begun.login).toMatchObject({ scope: 'glossary', isStepUp: true, returnTo: '/page' });
    expect(begun.cookies.filter((line) => line.includes('step-up'))).toEqual([expect.stringContaining('Max-Age=0')]);
    for (const url of ['/login?returnTo=/other', '/login'])
      expect(begin({ ...login, url }, {}, runtime).login).toMatchObject({ scope: undefined, isStepUp: false });
  });

  test.for<[what: string, scope: string | undefined, isStepUp: boolean]>([
    ['the scopes that the frame needs', 'glossary', true],
    ['the scopes of its route', undefined, false],
  ])('of a popup asks for %s, and leaves the page of the user’s tabs alone', ([, scope, isStepUp]) => {
    const runtime = open();
    const visit = exchangeOf({ url: '/', protocol: 'https' });
    runtime.returnCookie.remember(visit.req, visit.res, '/remembered');
    const { req, res } = exchangeOf({ protocol: 'https', cookies: setCookies(visit.res).map(pairOf) });
    runtime.frames.note(req, { challenge: 'challenge', grantId: 'grant', scope, isStepUp });
    const url = beginLogin(runtime, req, res, CALLBACK_URL, { scope: 'of-route' }) ?? '';
    const { searchParams } = new URL(url);
    expect(searchParams.get('scope')).toBe(scope ?? 'of-route');
    const cookies = setCookies(res);
    expect(cookies).toHaveLength(1);
    const login = runtime.pendingLogins.find(
      requestOf({ cookies: cookies.map(pairOf) }),
      searchParams.get('state') ?? '',
    );
    expect(login).toMatchObject({
      returnTo: undefined,
      isStepUp,
      frame: { challenge: 'challenge', grantId: 'grant' },
    });
  });

  test.for<[what: string, user: object | undefined, isConnection: boolean, isMarked: boolean]>([
    ['by their id', { id: '7' }, false, true],
    ['not at all without an id', {}, false, false],
    ['if nobody is logged in, not at all', undefined, true, false],
  ])('is bound to its user %s', ([, user, isConnection, isMarked]) => {
    const { login } = begin({ user }, isConnection ? { assignProperty: 'account' } : {});
    expect(login?.userMark !== '').toBe(isMarked);
  });

  test('that connects an account needs a user with an id', () => {
    expect(() => begin({ user: {} }, { assignProperty: 'account' })).toThrow(
      expect.objectContaining({ code: 'ERR_NO_USER_ID' }),
    );
  });

  test('leaves its page out where the headers of the response have no room for it', () => {
    const page = `/${'p'.repeat(1_000)}`;
    const beginWith = (text: string) =>
      begin({ url: `/login?returnTo=${page}` }, {}, open({ authorizationParams: { x: text } }));
    const { url = '', cookies, state } = beginWith('');
    // 150 characters for the state and what may follow it, and 90 around the cookie.
    const room = 2_800 - (url.length - `&state=${state}`.length) - 150 - 90 - `${pairOf(cookies[0])}; `.length;
    expect(beginWith('x'.repeat(room)).login?.returnTo).toBe(page);
    expect(beginWith('x'.repeat(room + 1)).login?.returnTo).toBeUndefined();
  });
});

const HERE = 'here.example';

/** What is told of a login that was begun with this request, and the warnings. */
function told(parts: RequestParts, redirectUri = CALLBACK_URL) {
  const warned = warnings();
  const mismatches = new HostMismatches();
  mismatches.note(requestOf(parts), redirectUri, 'state');
  return { message: mismatches.explain('state'), warned, mismatches };
}

const trusting = { app: { get: (setting: string) => (setting === 'trust proxy fn' ? () => true : undefined) } };
const tls = { protocol: 'https' };

describe('of a lost login', () => {
  test.for<
    [what: string, parts: RequestParts, redirectUri: string, message: RegExp | undefined, warned: RegExp | undefined]
  >([
    ['at the host of its callback', tls, CALLBACK_URL, undefined, undefined],
    ['at another port of it', { ...tls, headers: { host: 'app.example:8443' } }, CALLBACK_URL, undefined, undefined],
    [
      'at another host',
      { ...tls, headers: { host: HERE } },
      CALLBACK_URL,
      /begun at here\.example and came back to app\.example, .*Open the application at app\.example\.$/,
      /begun at here\.example, but callbackURL leads to app\.example:/,
    ],
    [
      'at a host whose name begins so',
      { ...tls, headers: { host: 'app.example.evil' } },
      CALLBACK_URL,
      /begun at app\.example\.evil/,
      /app\.example\.evil/,
    ],
    [
      'at another host, as a trusted proxy says',
      { ...tls, ...trusting, headers: { 'x-forwarded-host': HERE } },
      CALLBACK_URL,
      /begun at here\.example/,
      /here/,
    ],
    [
      'at the host of its callback, as a trusted proxy says',
      { ...tls, ...trusting, headers: { host: HERE, 'x-forwarded-host': 'app.example' } },
      CALLBACK_URL,
      undefined,
      undefined,
    ],
    [
      'at another host, as somebody says',
      { ...tls, headers: { 'x-forwarded-host': HERE } },
      CALLBACK_URL,
      undefined,
      undefined,
    ],
    ['at no host', { ...tls, headers: { host: 'a b' } }, CALLBACK_URL, undefined, undefined],
    ['over http', { protocol: 'http' }, CALLBACK_URL, /begun over http, /, undefined],
    [
      'over http, with an address in capitals',
      { protocol: 'http' },
      'HTTPS://app.example/callback',
      /begun over http, /,
      undefined,
    ],
    [
      'over https, as a proxy says shortly',
      { protocol: 'http', headers: { 'x-forwarded-proto': 'https' } },
      CALLBACK_URL,
      undefined,
      undefined,
    ],
    [
      'over https, as a proxy says',
      { protocol: 'http', headers: { 'x-forwarded-proto': ' HTTPS, http' } },
      CALLBACK_URL,
      undefined,
      undefined,
    ],
    [
      'over another protocol, as a proxy says',
      { protocol: 'http', headers: { 'x-forwarded-proto': 'http, https' } },
      CALLBACK_URL,
      /begun over http, /,
      undefined,
    ],
    [
      'over a protocol of a longer name',
      { protocol: 'http', headers: { 'x-forwarded-proto': 'httpsx' } },
      CALLBACK_URL,
      /begun over http, /,
      undefined,
    ],
    [
      'over http, where the callback has http too',
      { protocol: 'http' },
      'http://app.example/callback?x=https:',
      undefined,
      undefined,
    ],
    [
      'at an address of loopback',
      { headers: { host: '127.0.0.1:3000' } },
      'http://localhost:3000/callback',
      /begun at 127\.0\.0\.1:3000 and came back to localhost:3000/,
      /begun at 127\.0\.0\.1:3000 and came back/,
    ],
    [
      'at an address of loopback, with a callback elsewhere',
      { headers: { host: '127.0.0.1' } },
      'http://app.example/callback',
      /begun at 127\.0\.0\.1 /,
      /but callbackURL leads/,
    ],
    [
      'elsewhere, with a callback of loopback',
      { headers: { host: HERE } },
      'http://localhost/callback',
      /begun at here/,
      /but callbackURL leads/,
    ],
  ])('that was begun %s is told what happened', ([, parts, redirectUri, message, warned]) => {
    const { message: given, warned: emitted } = told(parts, redirectUri);
    expect(given).toEqual(message && expect.stringMatching(message));
    expect(emitted).toEqual(warned ? [{ code: 'ERR_LOGIN_HOST', message: expect.stringMatching(warned) }] : []);
  });

  test('at an address of loopback is warned of at once in production', () => {
    vi.stubEnv('NODE_ENV', 'production');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { warned } = told({ headers: { host: '127.0.0.1' } }, 'http://localhost/callback');
    expect(warned).toEqual([expect.objectContaining({ message: expect.stringContaining('but callbackURL leads to') })]);
  });

  test('nothing is told once it is forgotten, nor of one that has no state', () => {
    const { mismatches } = told({ ...tls, headers: { host: HERE } });
    expect([mismatches.explain(undefined), mismatches.explain('another')]).toEqual([undefined, undefined]);
    mismatches.forget('state');
    expect(mismatches.explain('state')).toBeUndefined();
  });

  test('the thousand that began last are told of', () => {
    const { mismatches } = told({ protocol: 'http' });
    const note = (state: string) => mismatches.note(requestOf({ protocol: 'http' }), CALLBACK_URL, state);
    for (let count = 1; count < 1_000; count++) note(`${count}`);
    expect(mismatches.explain('state')).toBeDefined();
    note('one more');
    expect(['state', '1', 'one more'].map((state) => mismatches.explain(state) !== undefined)).toEqual([
      false,
      true,
      true,
    ]);
  });
});
