import { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type AuthenticateOptions, authenticate } from '../../src/login/authenticate.js';
import { setCookies } from '../request/fixture.js';
import { byUser } from '../support/world.js';
import { noteActions, open, type RequestParts, requestOf, type Told, visit, warnings } from './fixture.js';

const toService = ['redirect', expect.stringMatching(/^https:\/\/accounts\.example\/oauth\/authorize\?/)];
const error = (properties: object) => ['error', expect.objectContaining({ strategy: 'oauth-app', ...properties })];

test('a login leads to the service, and no answer is stored or tells the address', async () => {
  const { res, told } = await visit(open());
  expect(told).toEqual([toService]);
  expect(setCookies(res)).toHaveLength(1);
  expect([res.getHeader('Cache-Control'), res.getHeader('Referrer-Policy')]).toEqual(['no-store', 'no-referrer']);
});

test('a response gets the method redirect that Passport calls, unless it has its own', async () => {
  const { res } = await visit(open());
  Reflect.get(res, 'redirect')('/page');
  expect([res.statusCode, res.getHeader('Location'), res.writableEnded]).toEqual([302, '/page', true]);
  const req = requestOf({ session: {} });
  const redirect = () => undefined;
  const own = Object.assign(new ServerResponse(req), { redirect });
  Reflect.set(req, 'res', own);
  await authenticate(open(), noteActions([]), req, {});
  expect(own.redirect).toBe(redirect);
  // Nor is it in the way of who adds one later.
  expect([Reflect.set(res, 'redirect', redirect), Reflect.deleteProperty(res, 'redirect')]).toEqual([true, true]);
});

const PREFIXED = 'https://app.example/app/callback';
test.for<[url: string, isCallback: boolean, callbackURL: string | undefined, options: AuthenticateOptions]>([
  ['/callback', true, undefined, {}],
  ['/Callback/?x=1', true, undefined, {}],
  ['/login', false, undefined, {}],
  ['/login?returnTo=/page', false, undefined, {}],
  ['/login?code=c', true, undefined, {}],
  ['/login?state[]=s', true, undefined, {}],
  ['/connected', true, undefined, { callbackURL: '/connected' }],
  ['/callback', false, undefined, { callbackURL: '/connected' }],
  ['/auth/callback', true, 'callback', {}],
  ['/auth/login', false, 'callback', {}],
  ['/auth/callback', false, '/callback', {}],
  ['/callback', false, PREFIXED, {}],
  ['/callback', true, PREFIXED, { successRedirect: '/' }],
  ['/callback', true, PREFIXED, { successReturnToOrRedirect: '/' }],
  ['/callback', true, PREFIXED, { failureRedirect: '/' }],
  ['/app', false, PREFIXED, { successRedirect: '/' }],
  ['/', false, PREFIXED, { successRedirect: '/' }],
])(
  '%s is a callback: %s, for the callbackURL %s and the options %j',
  async ([url, isCallback, callbackURL, options]) => {
    const { told } = await visit(open(callbackURL ? { callbackURL } : {}), { url }, options);
    expect(told).toEqual([
      [
        isCallback ? 'fail' : 'redirect',
        ...(isCallback ? [expect.anything(), expect.any(Number)] : [expect.any(String)]),
      ],
    ]);
  },
);

test('the callbackURL of a route is the redirect URL', async () => {
  const { told } = await visit(open(), {}, { callbackURL: 'https://app.example/connected' });
  expect(new URL(String(told[0]?.[1])).searchParams.get('redirect_uri')).toBe('https://app.example/connected');
  expect((await visit(open(), {}, { callbackURL: 7 })).told).toEqual([error({ option: 'callbackURL' })]);
});

describe('an option of passport.authenticate', () => {
  test('that somebody reads is not warned of', async () => {
    const warned = warnings();
    const names = [
      ...['authInfo', 'authorizationParams', 'callback', 'defaultStrategy', 'failWithError', 'failureFlash', 'scope'],
      ...['failureMessage', 'keepSessionInfo', 'pauseStream', 'property', 'session', 'successFlash', 'successMessage'],
      ...['successRedirect', 'successReturnToOrRedirect', 'failureRedirect', 'userProperty', 'assignProperty'],
      ...['callbackURL', 'nobody-reads', 'x'.repeat(65), ''],
    ];
    await visit(open(), {}, Object.fromEntries(names.map((name) => [name, {}])));
    await visit(open(), {}, Object.fromEntries([['prompt', undefined]]));
    expect(warned).toEqual([]);
  });

  test.for([
    ['prompt', 'A parameter of the authorization request is set as { authorizationParams: { prompt: … } }.'],
    [
      'state',
      'The strategy always creates and checks the state itself. To return to a page, link to /login?returnTo=/page.',
    ],
  ] as const)('that nobody reads is warned of once: %s', async ([name, advice]) => {
    const warned = warnings();
    const runtime = open();
    for (let times = 0; times < 2; times++) await visit(runtime, {}, { [name]: 'none' } as AuthenticateOptions);
    const message = `passport.authenticate: this strategy ignores the option ${name}. ${advice}`;
    expect(warned).toEqual([{ code: 'ERR_IGNORED_OPTION', message }]);
  });
});

const BY_SCRIPT =
  'A script cannot follow the redirect to the service. Begin the login with a link to this route, or with location.assign().';
const NOBODY =
  'Nobody is logged in, so this account cannot be connected: its grant would belong to nobody. Please log in first.';
const secure = { session: { cookie: { secure: true } } };
const prefetch = { 'sec-purpose': 'prefetch' };
const byScript = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' };
const inFrame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' };
const connect = { assignProperty: 'account' };

test.for<[what: string, parts: RequestParts, options: object, route: AuthenticateOptions, told: unknown[]]>([
  ['without a session', { session: undefined }, {}, {}, error({ code: 'ERR_NO_SESSION' })],
  [
    'without a session, of grants that the application names,',
    { session: undefined },
    { grantId: byUser },
    {},
    toService,
  ],
  ['whose session cookie will not be set', secure, {}, {}, error({ code: 'ERR_SESSION_COOKIE' })],
  ['whose session cookie holds no grant, and will not be set', secure, { grantId: byUser }, {}, toService],
  ['in a frame of another site', { headers: inFrame }, {}, {}, error({ code: 'ERR_SESSION_COOKIE' })],
  [
    'that is prefetched',
    { headers: prefetch },
    {},
    {},
    error({
      name: 'AuthorizationError',
      code: 'ERR_PREFETCH',
      status: 503,
      message: 'A login must not be prefetched.',
    }),
  ],
  ['by a script', { headers: byScript }, {}, {}, ['fail', { message: BY_SCRIPT }, 403]],
  [
    'by a script that prefetches',
    { headers: { ...prefetch, ...byScript } },
    {},
    {},
    ['fail', { message: BY_SCRIPT }, 403],
  ],
  ['that connects an account', { user: { id: '7' } }, {}, connect, toService],
  ['that connects an account of nobody', {}, {}, connect, toService],
  ['that connects an account of nobody by an id', {}, { grantId: byUser }, connect, ['fail', { message: NOBODY }, 403]],
  ['of nobody by an id', {}, { grantId: byUser }, {}, toService],
  [
    'that names no host',
    { headers: { host: undefined } },
    { callbackURL: '/callback' },
    {},
    ['fail', { message: 'The request names no host to return to after the login.' }, 400],
  ],
])('a login %s is answered', async ([, parts, options, route, told]) => {
  const visited = await visit(open(options), parts, route);
  expect(visited.told).toEqual([told]);
  expect(setCookies(visited.res)).toHaveLength(told === toService ? 1 : 0);
});

test('a login where apiClient is mounted before the session is an error', async () => {
  const runtime = open();
  const req = requestOf();
  const res = new ServerResponse(req);
  runtime.clients.attach(req, res, 'apiClient');
  Object.assign(req, { session: {}, res });
  const told: Told[] = [];
  await authenticate(runtime, noteActions(told), req, {});
  expect(told).toEqual([error({ code: 'ERR_MIDDLEWARE_ORDER' })]);
});

test('a redirect to a route where logins begin is known from then on', async () => {
  const runtime = open();
  const leads = () => runtime.rounds.leadsToLogin('/login');
  await visit(runtime, { headers: byScript });
  expect(leads()).toBe(false);
  await visit(runtime);
  expect(leads()).toBe(true);
});

test('a request whose response is not to be found is an error', async () => {
  const told: Told[] = [];
  await authenticate(open(), noteActions(told), requestOf({ session: {} }), {});
  expect(told).toEqual([error({ code: 'ERR_NO_RESPONSE' })]);
});

test('where the application’s own callback throws, the browser gets a 500', async () => {
  warnings();
  const req = requestOf();
  const res = new ServerResponse(req);
  Reflect.set(req, 'res', res);
  const throws = () => {
    throw new Error('Its own');
  };
  await authenticate(open(), { ...noteActions([]), error: throws }, req, {});
  expect([res.statusCode, res.writableEnded]).toEqual([500, true]);
});
