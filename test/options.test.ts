import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Agent } from 'undici';
import { afterAll, describe, expect, test } from 'vitest';
import {
  apiClient,
  ConfigurationError,
  logout,
  memoryTokenStore,
  oauthErrors,
  requireAuthorization,
  Strategy,
} from '../src/index.js';
import { resolveOptions } from '../src/options.js';

const required = {
  authUrl: 'https://accounts.example.com',
  baseUrl: 'https://api.example.com',
  clientID: 'id',
  clientSecret: 'secret',
  callbackURL: 'https://app.example.net/callback',
  scope: ['project', 'tm'],
};

/** The error that these options end in. */
function refusalOf(options: unknown, verify?: unknown): ConfigurationError {
  try {
    new Strategy(options as never, verify as never);
  } catch (error) {
    if (error instanceof ConfigurationError) return error;
    throw error;
  }
  throw new Error('The options were taken');
}

describe('an option that is wrong is named, with what was expected', () => {
  const notAddresses = [
    ...['', 'accounts.example.com', '/path', '//accounts.example.com', 'ftp://accounts.example.com'],
    ...['javascript:alert(1)', 'http://accounts.example.com', 'http://localhost.evil.example'],
    ...['http://127.0.0.1.evil.example', 'http://evil.example#localhost', 'https://user:pass@accounts.example.com'],
    ...['https://user@accounts.example.com', 'https://accounts.example.com?x=1', 'https://accounts.example.com?'],
    ...['https://accounts.example.com#x', 'https://accounts.example.com#', 'https://', 7, null, {}],
    ['https://accounts.example.com'],
  ];
  const notTexts = ['', 7, null, {}, ['x'], true];
  const notFunctions = ['x', 7, null, {}, true];
  const bad: Readonly<Record<string, readonly unknown[]>> = {
    authUrl: notAddresses,
    baseUrl: notAddresses,
    enterpriseBaseUrl: [
      ...notAddresses,
      'https://api.example.com',
      ...['https://{domain}', 'https://api.{domain}', 'https://api.example.com/{domain}'],
      ...['https://api.example.com/?d={domain}', 'https://x-{domain}.example.com', 'https://{domain}x.example.com'],
      ...['https://{domain}.{domain}.example.com', 'https://{domain}@api.example.com'],
      ...['https://api.example.com:{domain}', 'http://{domain}.example.com', 'https://{Domain}.example.com'],
    ],
    clientID: notTexts,
    clientSecret: [...notTexts.filter((value) => !Array.isArray(value)), [], [''], ['x', 7]],
    callbackURL: [
      ...notTexts,
      '//evil.example/callback',
      ...['/\\evil.example/callback', '\\\\evil.example', 'ftp://app.example.net/callback', 'javascript:alert(1)'],
      ...['myapp:/callback', 'https:', 'https:///callback', 'https://app.example.net/callback#x', '/callback#x'],
      ...['\\callback', '/a\\b', 'https://u:p@app.example.net/callback', 'https://u@app.example.net/callback'],
      ...['/call back', '/callbäck', '/callback\r\nX: y'],
      `/${'a'.repeat(2048)}`,
    ],
    scope: ['  ', [''], ['a b'], 'a"b', 'a\\b', 'a\tb', 'ä', [7], 7, null, {}],
    name: [
      '',
      'a\nb',
      'ä',
      'a'.repeat(65),
      ...['__proto__', 'constructor', 'toString', 'cookie', 'passport', 'returnTo', 'id', 7, null],
    ],
    organizationDomain: notFunctions,
    pkce: ['S256', 1, null],
    userProfile: notFunctions,
    passReqToCallback: ['yes', 1, null],
    tokenStore: [
      'redis',
      null,
      {},
      { get() {}, set() {} },
      { get() {}, set() {}, delete: true },
      { ...memoryTokenStore(), lock: 7 },
      { ...memoryTokenStore(), update: true },
      { ...memoryTokenStore(), list: [] },
      { ...memoryTokenStore(), watch: true },
    ],
    grantId: notFunctions,
    encryptionKeys: ['', 'k', 'fifteen letters', [], [''], ['a', 7], 7, null, {}],
    concurrency: [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '20', null],
    timeout: [0, -1, 1.5, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY, '10', null],
    dispatcher: ['proxy', 7, null, {}, { dispatch: true }],
    clock: ['now', 7, null, async () => 0, () => Promise.reject(new Error('down'))],
    refresh: [7, null, [], 'soon'],
    cache: [7, null, [], true, 'on'],
  };
  const cases = Object.entries(bad).flatMap(([option, values]) => values.map((value) => [option, value] as const));
  test.each(cases)('%s: %j', (option, value) => {
    const error = refusalOf({ ...required, [option]: value });
    expect(error).toMatchObject({ option, code: 'ERR_CONFIGURATION', status: 500 });
    expect(error.message.startsWith(`${option}: `)).toBe(true);
    expect(error.message.length).toBeGreaterThan(option.length + 15);
  });

  test.each([
    ['refresh', 'leeway', [-1, Number.NaN, '30', 86_401, null]],
    ['refresh', 'ahead', [-1, Number.NaN, '300', 86_401, null]],
    ['cache', 'max', [0, 1.5, -1, Number.NaN, '10', null]],
    ['cache', 'ttl', [-1, Number.NaN, '30', null]],
  ])('%s.%s', (group, option, values) => {
    for (const value of values) {
      const error = refusalOf({ ...required, [group]: { [option]: value } });
      expect(error.option).toBe(`${group}.${option}`);
      expect(error.message.startsWith(`${group}.${option}: expected `)).toBe(true);
    }
  });

  test.each([[undefined], [null], ['options'], [7], [[]]])('the options themselves: %j', (options) => {
    expect(refusalOf(options)).toMatchObject({ option: 'options' });
  });

  test.each([['verify'], [7], [null], [{}]])('verify: %j', (verify) => {
    expect(refusalOf(required, verify)).toMatchObject({ option: 'verify' });
  });
});

describe('an option that is missing is named', () => {
  test.each([
    ['authUrl', 'AUTH_URL'],
    ['baseUrl', 'BASE_URL'],
    ['clientID', 'CLIENT_ID'],
    ['clientSecret', 'CLIENT_SECRET'],
    ['callbackURL', 'CALLBACK_URL'],
    ['scope', 'SCOPE'],
  ])('%s with the environment variable that it comes from most often, %s', (option, variable) => {
    const hint = `Is the environment variable ${variable} set?`;
    const { [option as keyof typeof required]: _left, ...others } = required;
    const empty = option === 'scope' ? [] : [{ ...required, [option]: '' }];
    for (const options of [others, { ...required, [option]: undefined }, ...empty])
      expect(refusalOf(options)).toMatchObject({ option, message: expect.stringContaining(hint) });
    expect(refusalOf({ ...required, [option]: 5 }).message).not.toContain('environment');
  });
});

test.each([
  ['authUrl', 'https://accounts.example.com/oauth/authorize'],
  ['baseUrl', 'https://api.example.com/api/v2/'],
  ['enterpriseBaseUrl', 'https://{domain}.api.example.com/api/v2'],
])('%s that has the default path already is named', (option, address) => {
  expect(refusalOf({ ...required, [option]: address }).message).toMatch(new RegExp(`^${option}: .* which is added`));
});

describe('an unknown option is named', () => {
  test.each([
    ['clientId', 'clientID'],
    ['callbackUrl', 'callbackURL'],
    ['authURL', 'authUrl'],
    ['PKCE', 'pkce'],
  ])('%s, with the question whether it is %s', (option, twin) => {
    const error = refusalOf({ ...required, [option]: 'x' });
    expect(error.option).toBe(option);
    expect(error.message).toContain(`did you mean ${twin}?`);
  });

  test.each(['state', 'sessionKey', 'authorizationURL', 'tokenURL', 'clock2', 'constructor', 'toString'])(
    '%s',
    (option) => {
      expect(refusalOf({ ...required, [option]: 'x' })).toMatchObject({ option });
    },
  );

  test('within refresh and cache, by its path', () => {
    expect(refusalOf({ ...required, refresh: { Leeway: 1 } })).toMatchObject({
      option: 'refresh.Leeway',
      message: 'refresh.Leeway: is not an option of refresh; did you mean leeway?',
    });
    expect(refusalOf({ ...required, cache: { size: 1 } })).toMatchObject({
      option: 'cache.size',
      message: 'cache.size: is not an option of cache; the options are max, ttl',
    });
  });
});

describe('an option that a middleware does not have is named', () => {
  const strategy = new Strategy(required);
  afterAll(() => strategy.close());
  // The options as an application in JavaScript may write them.
  test.each<[string, string, (options: never) => unknown, string]>([
    ['apiClient', 'prop', (options) => apiClient(strategy, options), 'the options are property'],
    ['apiClient', 'Property', (options) => apiClient(strategy, options), 'did you mean property?'],
    ['requireAuthorization', 'redirect', requireAuthorization, 'the options are login, scope, property, frame'],
    ['logout', 'property', (options) => Reflect.apply(logout, undefined, [strategy, options]), 'it has none'],
  ])('%s, %s', (_name, option, create, hint) => {
    expect(() => create({ [option]: 'x' } as never)).toThrow(
      expect.objectContaining({ code: 'ERR_CONFIGURATION', option, message: expect.stringContaining(hint) }),
    );
  });

  test('and a property that is no name is refused when the middleware is created', () => {
    for (const property of ['', 7, null]) {
      const options = { property } as never;
      const refusal = expect.objectContaining({ code: 'ERR_CONFIGURATION', option: 'property' });
      expect(() => apiClient(strategy, options)).toThrow(refusal);
      expect(() => requireAuthorization(options)).toThrow(refusal);
    }
  });

  test.each<[string, (req: never) => unknown]>([
    ['requireAuthorization', requireAuthorization],
    ['oauthErrors', oauthErrors],
  ])('and %s says that it was mounted, and not called', (name, mounted) => {
    const message = `options: expected an object of options, got a request: mount what ${name}(options) returns`;
    const error = new ConfigurationError(message, { option: 'options' });
    expect(() => mounted(new IncomingMessage(new Socket()) as never)).toThrow(error);
  });

  test('while the index of an array is no option, so that strategies.map(logout) works', () => {
    expect([strategy].map(logout)).toHaveLength(1);
  });
});

describe('the options, resolved', () => {
  test('have the defaults of the contract', () => {
    expect(resolveOptions(required)).toMatchObject({
      name: 'oauth-app',
      pkce: false,
      passReqToCallback: false,
      refresh: { leewayMs: 30_000, aheadMs: 300_000 },
      cache: { max: 10_000, ttlMs: 30_000 },
      timeoutMs: 10_000,
      encryptionKeys: [],
      enterpriseBaseUrl: undefined,
      concurrency: undefined,
      tokenStore: undefined,
      grantId: undefined,
      dispatcher: undefined,
    });
    expect(resolveOptions({ ...required, cache: false }).cache).toBeUndefined();
  });

  test('are frozen, and follow no later change of what was given', () => {
    const given = { ...required, scope: ['tm'] };
    const settings = resolveOptions(given);
    given.scope.push('admin');
    expect(settings.scope).toBe('tm');
    expect(Object.isFrozen(settings)).toBe(true);
  });

  test.each([
    ['authUrl', 'https://accounts.example.com/', 'https://accounts.example.com'],
    ['authUrl', 'https://accounts.example.com/base/', 'https://accounts.example.com/base'],
    ['authUrl', 'http://localhost:4000', 'http://localhost:4000'],
    ['authUrl', 'http://auth.localhost:4000', 'http://auth.localhost:4000'],
    ['baseUrl', 'http://127.0.0.1:4000', 'http://127.0.0.1:4000'],
    ['baseUrl', 'http://[::1]:4000', 'http://[::1]:4000'],
    ['enterpriseBaseUrl', 'https://{domain}.api.example.com/', 'https://{domain}.api.example.com'],
    ['enterpriseBaseUrl', 'https://api.{domain}.example.com/x', 'https://api.{domain}.example.com/x'],
    ['enterpriseBaseUrl', 'http://{domain}.api.localhost:4000', 'http://{domain}.api.localhost:4000'],
    ['scope', ' tm   project ', 'tm project'],
    ['scope', ['tm', 'project'], 'tm project'],
    ['callbackURL', 'callback', 'callback'],
    ['callbackURL', '../callback?x=1', '../callback?x=1'],
    ['callbackURL', 'https://app.example.net/%7e?x=+', 'https://app.example.net/%7e?x=+'],
  ])('take %s %j', (option, value, expected) => {
    expect(resolveOptions({ ...required, [option]: value })).toHaveProperty(option, expected);
  });

  test('take all options at once', async () => {
    const all = {
      ...required,
      enterpriseBaseUrl: 'https://{domain}.api.example.com',
      name: 'crowdin_2',
      organizationDomain: () => undefined,
      pkce: true,
      userProfile: async () => ({}),
      passReqToCallback: true,
      tokenStore: memoryTokenStore(),
      grantId: () => 'x',
      encryptionKeys: ['the new key of grants', 'the old key of grants'],
      refresh: { leeway: 0, ahead: 86_400 },
      cache: { max: 1, ttl: 0 },
      concurrency: 1,
      timeout: 1,
      dispatcher: new Agent(),
      clock: () => 0,
    };
    const strategy = new Strategy(all);
    expect(strategy.name).toBe('crowdin_2');
    await strategy.close();
  });
});
