import express from 'express';
import { describe, expect, test } from 'vitest';
import { browser, open, visit, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';
import { warnings } from '../support/warnings.js';
import type { App, Framework, Handler, WorldOptions } from '../support/world.js';

const frameworks: readonly Framework[] = ['express', 'connect'];

/** The `redirect_uri` of the authorization request that the login route answers with. */
async function redirectUriFor(headers: Record<string, string>, path = '/login'): Promise<string | null> {
  const answer = await rawRequest(world.url, path, { headers });
  return answer.status === 302 ? new URL(String(answer.headers.location)).searchParams.get('redirect_uri') : null;
}

describe.each(frameworks)('under %s', (framework) => {
  test.each([
    'http://app.example/callback',
    'http://APP.example:80/callback',
    'http://app.example/callback?b=2&a=%7e%20x+y&&=',
    'http://app.example/x/../callback',
    'http://app.example/callback?',
  ])('%s is byte for byte the same in authorization request and code exchange', threats(16), async (callbackURL) => {
    await open({ framework, strategy: { callbackURL } });
    world.register(callbackURL);
    expect(await redirectUriFor({})).toBe(callbackURL);
    const { search } = new URL(await world.begin(browser));
    await browser.visit(`${world.url}/callback${search}`);
    expect(world.tokenRequests()[0]?.body).toMatchObject({ redirect_uri: callbackURL });
    expect((await browser.visit(`${world.url}/whoami`)).json().authorized).toBe(true);
  });

  test('an absolute callbackURL is unaffected by forged hosts', threats(15), async () => {
    await open({ framework, before: (app) => framework !== 'connect' && app.set('trust proxy', true) });
    const forged = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
    expect(await redirectUriFor(forged)).toBe(`${world.url}/callback`);
    expect(await redirectUriFor({ ...forged, forwarded: 'host=evil.example;proto=https' })).toBe(
      `${world.url}/callback`,
    );
  });

  test(
    'a relative callbackURL follows the Host, and no X-Forwarded-Host where no proxy is trusted',
    threats(15),
    async () => {
      await open({ framework, strategy: { callbackURL: '/callback' } });
      expect(await redirectUriFor({})).toBe(`${world.url}/callback`);
      const forwarded = { host: 'app.example:8080', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
      const warned = warnings('ERR_LOGIN_HOST');
      expect(await redirectUriFor(forwarded)).toBe('http://app.example:8080/callback');
      expect(warned).toEqual([expect.objectContaining({ message: expect.stringContaining('trust proxy') })]);
    },
  );

  test.each([
    ...['evil.example/path', 'user@evil.example', 'evil.example?x', 'evil.example#x', 'a b', 'evil.example\\x'],
    ...['ünï.example', '[::1', 'evil.example:99999999', 'evil.example:99999', '999.1.1.1', 'xn--'],
  ])('a relative callbackURL is not resolved against a Host that is none: %j', threats(15), async (host) => {
    await open({ framework, strategy: { callbackURL: '/callback' } });
    expect(await redirectUriFor({ host: Buffer.from(host).toString('latin1') })).toBeNull();
    expect(world.service.requests).toEqual([]);
  });

  test('the code exchange repeats the redirect_uri of the authorization request, regardless of the host of the callback', async () => {
    await open({ framework, strategy: { callbackURL: '/callback' } });
    const { pathname, search } = new URL(await world.begin(browser));
    const cookie = browser.cookieHeader(world.url);
    await rawRequest(world.url, `${pathname}${search}`, { headers: { cookie, host: 'elsewhere.example' } });
    expect(world.tokenRequests()[0]?.body).toMatchObject({ redirect_uri: `${world.url}/callback` });
  });
});

describe('behind a trusted proxy under Express', () => {
  const behind = (trust: unknown): WorldOptions => ({
    strategy: { callbackURL: '/callback' },
    before: (app) => app.set('trust proxy', trust),
  });
  const forwarded = { host: 'inner:3000', 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'https' };

  test('a relative callbackURL follows X-Forwarded-Host and X-Forwarded-Proto', threats(15), async () => {
    await open(behind('loopback'));
    expect(await redirectUriFor(forwarded)).toBe('https://app.example/callback');
    expect(await redirectUriFor({ ...forwarded, 'x-forwarded-host': 'app.example, evil.example' })).toBe(
      'https://app.example/callback',
    );
  });

  test('a relative callbackURL does not if the proxy that is trusted is another one', threats(15), async () => {
    await open(behind('10.1.2.3'));
    expect(await redirectUriFor(forwarded)).toBe('http://inner:3000/callback');
  });

  test('the cookie of the login is bound to the host where the browser has https', async () => {
    await open(behind(true));
    const answer = await rawRequest(world.url, '/login', { headers: forwarded });
    expect(answer.headers['set-cookie']?.[0]).toMatch(/^__Host-.*; Secure$/);
  });
});

test('a relative callbackURL is resolved against the path of the login route, also where that is mounted below a prefix', async () => {
  await open({
    strategy: { callbackURL: 'callback' },
    routes: (app, { passport }) => app.get('/auth/deep/login', passport.authenticate('oauth-app') as Handler),
  });
  expect(await redirectUriFor({}, '/auth/deep/login?x=/y/')).toBe(`${world.url}/auth/deep/callback`);
});

test('an authorization request may name another callbackURL, which the code exchange repeats', async () => {
  await open({
    routes: (app, { passport, register, url }) => {
      const callbackURL = `${url}/callback?tenant=7`;
      register(callbackURL);
      app.get('/login-7', passport.authenticate('oauth-app', { callbackURL } as object) as Handler);
    },
  });
  const callback = await world.begin(browser, {}, '/login-7');
  expect((await browser.visit(callback)).status).toBe(302);
  expect(world.tokenRequests()[0]?.body).toMatchObject({ redirect_uri: `${world.url}/callback?tenant=7` });
});

describe('in an application that is mounted under Express', () => {
  const mounted = (trust: boolean): WorldOptions => ({
    strategy: { callbackURL: '/auth/callback' },
    before: (app) => app.set('trust proxy', trust),
    routes: (app, { passport, register, url }) => {
      const inner = express() as unknown as App;
      const handler = passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }) as Handler;
      inner.get('/login', handler);
      inner.get('/callback', handler);
      app.use('/auth', inner as unknown as Handler);
      register(`${url}/auth/callback`);
    },
  });

  test('logins work', async () => {
    await open(mounted(false));
    const callback = await world.begin(browser, {}, '/auth/login');
    expect(callback).toMatch(`${world.url}/auth/callback?`);
    expect((await visit(callback)).status).toBe(302);
  });

  test.each([
    [true, 'https://app.example/auth/callback'],
    [false, 'http://inner/auth/callback'],
  ])('the trust proxy setting is the one outside: %s', threats(15), async (trust, expected) => {
    await open(mounted(trust));
    const forwarded = { host: 'inner', 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'https' };
    expect(await redirectUriFor(forwarded, '/auth/login')).toBe(expected);
  });
});
