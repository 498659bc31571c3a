import { inspect } from 'node:util';
import passportModule from 'passport';
import type { StrategyOptions } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { addStrategy } from '../support/add-strategy.js';
import { Browser } from '../support/browser.js';
import { browser, open, openAtCallback, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { stored } from '../support/session-entries.js';
import { tellOutcome } from '../support/tell-outcome.js';
import { threats } from '../support/threats.js';
import type { Framework, Handler } from '../support/world.js';

const frameworks: readonly Framework[] = ['express', 'connect'];

/** The callback URL with its query changed. */
function altered(callback: string, change: Readonly<Record<string, string>>): string {
  const url = new URL(callback);
  for (const [name, value] of Object.entries(change)) url.searchParams.set(name, value);
  return url.href;
}

/** Visits a callback as it is written, with the cookies of the browser: `fetch` would change it on the way. */
function rawCallback(callback: string, options: { method?: string; headers?: Record<string, string> } = {}) {
  const path = callback.replace(world.url, '');
  const cookie = browser.cookieHeader(world.url);
  return rawRequest(world.url, path, { ...options, headers: { cookie, ...options.headers } });
}

describe.each(frameworks)('under %s', (framework) => {
  test.each<[string, string, number]>([
    ['a code without a state', '/callback?code=abc', 403],
    ['an error without a state', '/callback?error=access_denied', 403],
    ['a state alone', '/callback?state=abc', 400],
    ['an empty state', '/callback?code=abc&state=', 400],
    ['a forged state', `/callback?code=abc&state=${'A%20'.repeat(43)}`, 403],
    ['both code and error', '/callback?code=a&error=access_denied&state=b', 400],
    ['a code of 4096 characters', `/callback?code=${'a'.repeat(4096)}&state=s`, 403],
    ['one more', `/callback?code=${'a'.repeat(4097)}&state=s`, 400],
    ['a state of 512 characters', `/callback?code=c&state=${'a'.repeat(512)}`, 403],
    ['one more in the state', `/callback?code=c&state=${'a'.repeat(513)}`, 400],
    ['an error of 2048 characters', `/callback?error=${'a'.repeat(2048)}&state=s`, 403],
    ['one more in the error', `/callback?error=${'a'.repeat(2049)}&state=s`, 400],
    ['a code below another question mark', '/callback?/code=a&state=s', 400],
    ...['code=', 'state=a', 'error=a&error=b', 'code[]=a', 'a=b&state[x]=y'].map((query): [string, string, number] => [
      `${query} at the login route`,
      `/login?${query}`,
      400,
    ]),
  ])('a callback with %s is refused, and no request leaves', threats(1), async (_what, path, status) => {
    await open({ framework });
    const answer = await rawRequest(world.url, path);
    expect(answer.status).toBe(status);
    expect(answer.headers.location).toBeUndefined();
    expect(world.service.requests).toEqual([]);
  });

  test.each(['', '?', '?returnTo=/code', '?x=code', '?codex=1', '?constructor=1'])(
    'the login route with the query %j begins a login',
    async (query) => {
      await open({ framework });
      expect((await visit(`/login${query}`)).headers.get('location')).toMatch(/[?&]state=/);
    },
  );

  test.each([
    ['code twice', '&code=other'],
    ['state twice', '&state=other'],
    ['a code like an array', '&code[]=other'],
    ['a code like an array, percent-encoded', '&code%5B%5D=other'],
    ['a nested code', '&code[x]=other'],
    ['a nested state', '&state[x]=other'],
    ['__proto__ as a name', '&__proto__=other'],
    ['__proto__ as a nested name', '&__proto__[polluted]=yes'],
    ['__proto__ within a name', '&a[__proto__][polluted]=yes'],
    ['__proto__ as a value', '&other=__proto__'],
    ['an error beside the code', '&error=access_denied'],
    ['two issuers', '&iss=a&iss=b'],
    ['a nested issuer', '&iss[x]=a'],
    ['an issuer of 2049 characters', `&iss=${'a'.repeat(2049)}`],
    ['two descriptions', '&error_description=&error_description=a'],
    ['a description of 4097 characters', `&error_description=${'a'.repeat(4097)}`],
    ['an error_uri of 2049 characters', `&error_uri=${'a'.repeat(2049)}`],
  ])('a good callback to which %s was added is refused, and stays good without it', threats(2), async (_what, more) => {
    const callback = await openAtCallback({ framework });
    expect((await rawCallback(`${callback}${more}`)).status).toBe(400);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(world.tokenRequests()).toEqual([]);
    await visit(`${callback}&constructor=1`);
    expect((await whoami()).authorized).toBe(true);
  });

  test.each([
    ['of 8 kB', 'a'.repeat(8000)],
    ['with NUL', 'a%00b'],
    ['with a lone surrogate', 'a%ED%A0%80b'],
    ['with invalid UTF-8', 'a%FF%FEb'],
    ['with CR and LF', 'a%0D%0ASet-Cookie:%20x=y', 502],
    ['with letters beyond ASCII', 'a%C3%A9b', 502],
    ['with DEL', 'a%7Fb', 502],
    ['that is empty', ''],
  ])('a code or a state %s is refused before any look-up', threats(2), async (_what, value, errorStatus = 400) => {
    await open({ framework });
    const { searchParams } = new URL(await world.begin(browser));
    const good = { code: searchParams.get('code'), state: searchParams.get('state') };
    expect((await rawCallback(`/callback?code=${value}&state=${good.state}`)).status).toBe(400);
    expect((await rawCallback(`/callback?code=${good.code}&state=${value}`)).status).toBe(400);
    // An error may be any text (RFC 6749 allows less, and services send more).
    expect((await rawCallback(`/callback?error=${value}&state=${good.state}`)).status).toBe(errorStatus);
    if (errorStatus === 502) expect(world.errors.at(-1)?.message).toContain('no OAuth error code');
    expect(world.tokenRequests()).toEqual([]);
  });
});

describe('the state', () => {
  test('that is forged is refused, and the pending login still works', threats(3), async () => {
    const callback = await openAtCallback();
    for (const state of ['x', '__proto__x', 'A'.repeat(43), `${new URL(callback).searchParams.get('state')}A`]) {
      expect((await visit(altered(callback, { state }))).status).toBe(403);
    }
    expect(world.tokenRequests()).toEqual([]);
    expect((await visit(callback)).status).toBe(302);
  });

  test('works once, in series', threats(5), async () => {
    const callback = await openAtCallback();
    // The cookies as they were: an attacker keeps them.
    const cookie = browser.cookieHeader(world.url);
    expect((await visit(callback)).status).toBe(302);
    // The browser is logged in by now: it goes to the route's page, and nothing happens.
    expect((await visit(callback)).headers.get('location')).toBe('/');
    expect((await visit(callback, { headers: { cookie } })).status).toBe(403);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('works once, with fifty replays at once', threats(5), async () => {
    const callback = await openAtCallback();
    const answers = await Promise.all(Array.from({ length: 50 }, () => rawCallback(callback)));
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(49);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('does not work again after the exchange failed', threats(5), async () => {
    const callback = await openAtCallback();
    world.service.fail('token', { status: 500 });
    const cookie = browser.cookieHeader(world.url);
    expect((await visit(callback)).status).toBe(503);
    expect((await visit(callback, { headers: { cookie } })).status).toBe(403);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('of a login that was begun in another browser is refused, and no token request leaves', threats(6), async () => {
    await open();
    const attacker = new Browser();
    const callback = await world.begin(attacker);
    const victim = new Browser();
    expect((await victim.visit(callback)).status).toBe(403);
    await world.begin(victim);
    expect((await victim.visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await victim.visit(`${world.url}/whoami`)).json().user).toBeUndefined();
    expect((await attacker.visit(callback)).status).toBe(302);
  });

  test("is refused with another login's cookie under any name", threats(6), async () => {
    await open();
    const first = await world.begin(browser);
    const [nameOfFirst = ''] = [...browser.cookies(world.url).keys()];
    const attacker = new Browser();
    await world.begin(attacker);
    const [sealedForOther = ''] = [...attacker.cookies(world.url).values()];
    browser.cookies(world.url).set(nameOfFirst, sealedForOther);
    expect((await visit(first)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test("of another strategy's login in the same browser is refused, with no token request", threats(6), async () => {
    await open({
      routes: (app, world) => {
        addStrategy(world, 'other');
        app.get('/login-other', world.passport.authenticate('other') as Handler);
      },
    });
    const callback = await world.begin(browser, {}, '/login-other');
    expect((await visit(callback)).status).toBe(403);
    // Not even under the name that the cookie would have there.
    for (const [name, value] of browser.cookies(world.url)) {
      browser.cookies(world.url).set(name.replace('other.', 'oauth-app.'), value);
    }
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test("of another client's login is refused although the secret is the same", async () => {
    await open({
      routes: (app, { service, url }) => {
        const passport = new passportModule.Passport();
        const register = () =>
          service.register({ clientID: 'second', clientSecret: 'second secret', redirectUrls: [`${url}/callback`] });
        addStrategy({ passport, register, service, url }, 'oauth-app', '/callback', { clientID: 'second' });
        app.get('/login-other', passport.authenticate('oauth-app') as Handler);
      },
    });
    const callback = await world.begin(browser, {}, '/login-other');
    expect((await visit(callback)).status).toBe(403);
  });

  test('is good where a proxy has swapped the front of its path', async () => {
    await open({ strategy: { callbackURL: 'http://app.example/shop/callback' } });
    world.register('http://app.example/shop/callback');
    const { search } = new URL(await world.begin(browser));
    expect((await browser.visit(`${world.url}/callback${search}`)).status).toBe(302);
  });

  test('is refused at the route of another redirect URL, and still good at its own', async () => {
    await open({
      routes: (app, { passport, url }) => {
        const at = (callbackURL: string) => passport.authenticate('oauth-app', { callbackURL } as object) as Handler;
        app.get('/elsewhere', at('/elsewhere'));
        app.get('/other/callback', at(`${url}/other/callback`));
      },
    });
    const callback = await world.begin(browser);
    const { search } = new URL(callback);
    for (const path of ['/elsewhere', '/other/callback']) expect((await visit(path + search)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await visit(callback)).status).toBe(302);
  });

  test('is good for ten minutes, and not for longer', threats(7), async () => {
    let now = Date.now();
    await open({ strategy: { clock: () => now } });
    const lateBrowser = new Browser();
    const [late, inTime] = [await world.begin(lateBrowser), await world.begin(browser)];
    now += 10 * 60 * 1000 - 1;
    expect((await visit(inTime)).status).toBe(302);
    now += 1;
    expect((await lateBrowser.visit(late)).status).toBe(403);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('from the future is refused, as after a clock was set back', threats(7), async () => {
    let now = Date.now();
    const callback = await openAtCallback({ strategy: { clock: () => now } });
    now -= 60 * 60 * 1000;
    expect((await visit(callback)).status).toBe(403);
  });

  test.each([
    ['nonsense', () => 'nonsense'],
    ['nothing', () => ''],
    ['an unsealed login', () => `abc.${Buffer.from('{"redirectUri":"https://evil.example"}').toString('base64url')}`],
    ['a giant', () => 'A'.repeat(9000)],
    ['a sealed text that was cut', (value: string) => value.slice(0, -5)],
    ['broken percent-encoding', () => '%E0%A4%A'],
  ])('does not go with a cookie that was replaced by %s', async (_what, replace) => {
    const callback = await openAtCallback();
    for (const [name, value] of browser.cookies(world.url)) browser.cookies(world.url).set(name, replace(value));
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test('goes with its cookie among hundreds of foreign and malformed ones', async () => {
    const callback = await openAtCallback();
    const own = browser.cookieHeader(world.url);
    const foreign = Array.from({ length: 300 }, (_, index) => `__proto__=x; =y; ;;; c${index}=%FF; oauth-app.login.=z`);
    const cookie = `${foreign.join('; ').slice(0, 12_000)}; ${own}`;
    expect((await rawCallback(callback, { headers: { cookie } })).status).toBe(302);
  });
});

describe('an error in the callback', () => {
  test(
    'without a valid state is refused in words of this package, and the pending login is kept',
    threats(8),
    async () => {
      const callback = await openAtCallback();
      const forged = await visit(`/callback?error=access_denied&state=${'B'.repeat(43)}`);
      expect(forged.status).toBe(403);
      expect(forged.text).not.toContain('denied');
      expect((await visit(callback)).status).toBe(302);
    },
  );

  test('with a good state is a decline, with the message of the contract', threats(8), async () => {
    await open({ callback: tellOutcome });
    const page = await visit(await world.begin(browser, { decline: true }));
    expect(page.json()).toEqual({ error: null, user: false, info: { message: 'The user declined authorization' } });
    expect(world.tokenRequests()).toEqual([]);
  });

  test.for<[string, StrategyOptions['declines'], boolean]>([
    ['user_cancelled_login', undefined, true],
    ['user_cancelled_authorize', undefined, true],
    ['cancelled', undefined, false],
    ['cancelled', ({ error, description }) => error === 'cancelled' && description === 'By you', true],
    // The option takes the place of the default.
    ['access_denied', ({ error }) => error === 'cancelled', false],
  ])('%s with declines: %s is a decline: %s', threats(120), async ([error, declines, isDecline]) => {
    await open({ strategy: { declines } });
    const change = { error, error_description: 'By you' };
    const page = await visit(altered(await world.begin(browser, { decline: true }), change));
    expect(page.status).toBe(isDecline ? 401 : 502);
    expect(world.errors.map((told) => told.error)).toEqual(isDecline ? [] : [error]);
  });

  test('that declines throws about is an error of the configuration', async () => {
    const declines = () => {
      throw new Error('A mistake');
    };
    await open({ strategy: { declines } });
    expect((await visit(await world.begin(browser, { decline: true }))).status).toBe(500);
    expect(world.errors[0]).toMatchObject({ name: 'ConfigurationError', option: 'declines' });
  });

  test('that is declined uses the state up', async () => {
    await open();
    const callback = await world.begin(browser, { decline: true });
    expect((await visit(callback)).status).toBe(401);
    expect((await visit(callback.replace('error=access_denied', 'code=stolen'))).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  const errors: readonly (readonly [string, string | undefined])[] = [
    ['server_error', 'server_error'],
    ['invalid_scope', 'invalid_scope'],
    ['<script>alert(1)</script>', undefined],
    ['a.word-of_the_senders_own', 'a.word-of_the_senders_own'],
    ['The service is closed.', undefined],
    ['fermé', undefined],
    ['a\r\nSet-Cookie: x=y', undefined],
    ['a'.repeat(2_000), undefined],
  ];
  test.each(errors)('of %.40s with a good state is an AuthorizationError', threats(8, 9), async (code, told) => {
    await open();
    expect((await visit(`/callback?error=${encodeURIComponent(code)}&state=${'A'.repeat(43)}`)).status).toBe(403);
    const page = await visit(altered(await world.begin(browser, { decline: true }), { error: code }));
    expect(page.status).toBe(502);
    expect(world.errors[0]).toMatchObject({ name: 'AuthorizationError', code: 'ERR_AUTHORIZATION', error: told });
    if (told === undefined) expect(`${page.text}${inspect(world.errors[0])}`).not.toContain(code);
  });

  test.each([
    ['markup', '<img src=x onerror=alert(1)>'],
    ['CR and LF', 'fine\r\nSet-Cookie: admin=1'],
    ['4 kB', 'planted '.repeat(500)],
  ])('does not show, flash or log a description with %s', threats(9), async (_what, description) => {
    const flashed: unknown[] = [];
    await open({
      before: (app) => {
        app.use((req, _res, next) => {
          Object.assign(req, { flash: (...args: unknown[]) => flashed.push(args) });
          next();
        });
      },
      authenticate: { failureFlash: true, failureMessage: true },
    });
    for (const error of ['access_denied', 'server_error', 'a planted error']) {
      const change = { error, error_description: description, error_uri: 'https://evil.example/' };
      const page = await visit(altered(await world.begin(browser, { decline: true }), change));
      const shown = inspect([page.text, [...page.headers], flashed, world.errors, stored(world)], { depth: 9 });
      const told = world.errors.at(-1);
      if (told) expect(String(Reflect.get(told, 'description'))).toBe(description.slice(0, 500));
      for (const planted of ['onerror', 'admin=1', 'planted', 'evil.example']) expect(shown).not.toContain(planted);
    }
    expect(flashed).toEqual([['error', 'The user declined authorization']]);
  });
});

describe('with the option issuer (RFC 9207)', threats(124), () => {
  const issuer = 'https://accounts.example.com/';

  test.for<[what: string, iss: string, isOurs: boolean]>([
    ['its own', `iss=${encodeURIComponent(issuer)}`, true],
    ['none', '', false],
    ['an empty one', 'iss=', false],
    ['that of another server', 'iss=https%3A%2F%2Fevil.example%2F', false],
    ['another slash', `iss=${encodeURIComponent(issuer.slice(0, -1))}`, false],
  ])('a callback with %s is finished: %s', async ([, iss, isOurs]) => {
    for (const decline of [false, true]) {
      await open({ strategy: { issuer } });
      const callback = await world.begin(browser, { decline });
      expect((await visit(`${callback}&${iss}`)).status).toBe(isOurs ? (decline ? 401 : 302) : 403);
      expect(world.tokenRequests()).toHaveLength(isOurs && !decline ? 1 : 0);
      if (isOurs) continue;
      // The login that the user has begun can still be finished.
      expect((await visit(`${callback}&iss=${encodeURIComponent(issuer)}`)).status).toBe(decline ? 401 : 302);
    }
  });
});

describe('a callback that no person asked for', () => {
  test.each([
    ['HEAD', { method: 'HEAD' }, 405],
    ['POST', { method: 'POST' }, 405],
    ['PUT', { method: 'PUT' }, 405],
    ['a prefetch', { headers: { 'sec-purpose': 'prefetch' } }, 503],
    ['a prerender', { headers: { 'sec-purpose': 'prefetch;prerender' } }, 503],
    ['an old prefetch', { headers: { purpose: 'prefetch' } }, 503],
    ['the prefetch of Firefox', { headers: { 'x-moz': 'prefetch' } }, 503],
  ])('%s does not use the code up', threats(10), async (_what, options, status) => {
    const callback = await openAtCallback();
    const answer = await rawCallback(callback, options);
    expect([answer.status, answer.headers.allow]).toEqual([status, status === 405 ? 'GET' : undefined]);
    expect(world.tokenRequests()).toEqual([]);
    expect((await visit(callback)).status).toBe(302);
  });
});
