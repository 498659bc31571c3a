import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { embedded, memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { salesforce, shopify, zendesk } from 'passport-oauth-app/providers';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { type TenantsOptions, tenants } from 'passport-oauth-app/tenants';
import pg from 'pg';
import { createClient } from 'redis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RecordingDispatcher } from '../fuzz/recording-dispatcher.js';
import { Browser } from '../support/browser.js';
import { hold } from '../support/hold.js';
import { openStore } from '../support/open-store.mjs';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { Worker } from '../support/processes.js';
import { rawRequest } from '../support/raw-request.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { threats } from '../support/threats.js';
import { openShops, SHOPS } from './shops.js';

const refused = { status: 403 };

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe('a login', () => {
  test('belongs to one tenant, and a session may have several', async () => {
    const { browser, logIn, me, url, requestsTo } = await openShops();
    expect((await logIn(browser, 'acme')).text).toBe('Logged in.');
    const user = { id: '1', tenant: 'acme' };
    expect(await me(browser, 'ACME')).toMatchObject({ authorized: true, tenant: 'acme', user });
    expect(await me(browser, 'globex')).toMatchObject({ authorized: false, tenant: 'globex' });
    await logIn(browser, 'globex', '2');
    expect(await me(browser, 'acme')).toMatchObject({ authorized: true });
    expect(await me(browser, 'globex')).toMatchObject({ authorized: true, user: { id: '2', tenant: 'globex' } });
    // Without a tenant in the request, the latest login counts.
    expect((await browser.visit(`${url}/latest/me`)).json()).toMatchObject({ authorized: true, tenant: 'globex' });
    await browser.visit(`${url}/shops/acme/projects`);
    expect(requestsTo('acme', '/api/v2/projects')).toHaveLength(1);
    expect(requestsTo('globex', '/api/v2/projects')).toHaveLength(0);
  });

  test('with ids of the application counts at its tenant alone, whoever is logged in elsewhere', async () => {
    const grantId = (_req: unknown, user: Express.User) => Reflect.get(user, 'id');
    const { logIn, me, shops } = await openShops({ options: { grantId } });
    const [victim, other] = [new Browser(), new Browser()];
    await logIn(victim, 'acme', '2');
    await logIn(other, 'globex', '2');
    expect(await shops.grant({ tenant: 'acme', grantId: '2' })).toMatchObject({ tenant: 'acme', subject: '2' });
    // The user of globex has the same id as somebody at acme.
    expect(await me(other, 'acme')).toMatchObject({ authorized: false });
    await logIn(other, 'acme', '1');
    expect(await me(other, 'acme')).toMatchObject({ authorized: true });
    await logIn(victim, 'globex', '1');
    expect(await me(victim, 'acme')).toMatchObject({ authorized: true });
  });

  test.each([
    ['logout(shops)', '/logout'],
    ["the application's req.logout() at one of them", '/shops/acme/leave'],
    ["the application's req.logout() elsewhere", '/shops/unknown/leave'],
  ])('ends at all tenants with %s, and every grant is deleted', async (_, path) => {
    const { browser, logIn, me, url, shops } = await openShops();
    for (const tenant of SHOPS) await logIn(browser, tenant);
    expect(await all(shops.grants())).toHaveLength(3);
    expect((await browser.visit(`${url}${path}`, { method: 'POST' })).text).toBe('Logged out.');
    for (const tenant of SHOPS) expect(await me(browser, tenant)).toMatchObject({ authorized: false });
    expect((await all(shops.grants())).filter(({ ended }) => !ended)).toEqual([]);
  });

  test('begins at the tenant of the page, and leads back there', async () => {
    const { browser, logIn, url, service } = await openShops();
    await logIn(browser, 'globex');
    const page = await browser.visit(`${url}/shops/acme/projects`);
    const login = new URL(page.headers.get('location') ?? '', url);
    expect(`${login}`).toBe(`${url}/shops/acme/login?returnTo=%2Fshops%2Facme%2Fprojects`);
    // An error handler knows it too; a page of no tenant has no login.
    service.revoke('1');
    service.expireAccessTokens();
    expect((await browser.visit(`${url}/shops/globex/user`)).headers.get('location')).toMatch('/shops/globex/login?');
    expect((await browser.visit(`${url}/shops/unknown/projects`)).status).toBe(401);
  });

  test('is found again by its pending login where one callback URL serves all', async () => {
    const { browser, me, url, service } = await openShops({ sharesCallback: true });
    const [first, second] = await Promise.all(
      ['acme', 'globex'].map((tenant) => browser.visit(`${url}/shops/${tenant}/login`)),
    );
    for (const page of [second, first])
      expect((await browser.visit(await service.approve(page?.headers.get('location') ?? ''))).text).toBe('Logged in.');
    for (const tenant of ['acme', 'globex']) expect(await me(browser, tenant)).toMatchObject({ authorized: true });
    expect((await browser.visit(`${url}/callback?code=x&state=${'x'.repeat(43)}`)).status).toBe(403);
  });
});

describe('an attack', threats(129), () => {
  test('by a callback of another tenant is refused, and no request leaves', async () => {
    const { browser, service, url, me } = await openShops();
    const page = await browser.visit(`${url}/shops/acme/login`);
    const callback = new URL(await service.approve(page.headers.get('location') ?? ''));
    service.requests.length = 0;
    expect(await browser.visit(`${url}/callback/globex${callback.search}`)).toMatchObject(refused);
    // A hostile tenant's server has sent the browser back with the code of another.
    const hostile = await browser.visit(`${url}/shops/globex/login`);
    const state = new URL(hostile.headers.get('location') ?? '').searchParams.get('state') ?? '';
    const code = callback.searchParams.get('code') ?? '';
    expect(await browser.visit(`${url}/callback/acme?${new URLSearchParams({ code, state })}`)).toMatchObject(refused);
    expect(service.requests).toEqual([]);
    expect(await me(browser, 'globex')).toMatchObject({ authorized: false });
    expect((await browser.visit(callback.href)).text).toBe('Logged in.');
  });

  test('by a name or a forged Host reaches no host but one below the domain', async () => {
    const dispatcher = new RecordingDispatcher([]);
    // A directory that makes a host of every name, as many do.
    const { url, service, shops, asked } = await openShops({
      options: { dispatcher },
      resolve: (tenant) => {
        const host = service.optionsOf('acme').authUrl.replace('acme', tenant);
        return { ...service.optionsOf('acme'), authUrl: host, baseUrl: host };
      },
    });
    const isBelow = new RegExp(`^http://[a-z0-9._-]+\\.localhost:${new URL(service.authUrl).port}$`);
    const tokens = { accessToken: 'a', refreshToken: 'r', expiresAt: Date.now() + 3_600_000 };
    const names = [
      ...['evil.com', 'acme.localhost.evil.com', 'acme.myshopify.com.evil.com', 'xn--acme-9na', 'acme/../globex'],
      ...['evil.com/', 'evil.com#', 'evil.com?', 'evil.com\\', 'a@evil.com', 'evil.com:80', 'evil.com%2f', 'acme\0'],
      ...[
        'acme\r\nHost: evil',
        '127.0.0.1',
        '0x7f000001',
        '[::1]',
        '2130706433',
        '\u2100cme',
        'ａcme',
        'evil\u3002com',
      ],
      ...['..', '.', ' acme', 'acme ', 'a'.repeat(300), '__proto__', 'constructor', 'EVIL.COM', ''],
    ];
    for (const name of names) {
      const { status, headers } = await rawRequest(url, `/shops/${encodeURIComponent(name)}/login`);
      if (status === 302) expect(new URL(headers.location ?? '').origin).toMatch(isBelow);
      else expect(status).toBeGreaterThanOrEqual(400);
      const place = { tenant: name, grantId: '1' };
      const call = shops.importGrant(place, tokens).then(() => shops.client(place).get('/user'));
      await expect(call).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_/) });
    }
    expect(dispatcher.origins.size).toBeGreaterThan(3);
    for (const origin of dispatcher.origins) expect(origin).toMatch(isBelow);
    for (const name of asked) expect(name).toMatch(/^[a-z0-9._-]{1,253}$/);
    const headers = { host: 'evil.com', 'x-forwarded-host': 'evil.com' };
    const { location = '' } = (await rawRequest(url, '/shops/acme/login', { headers })).headers;
    expect(new URL(location).origin).toBe(service.optionsOf('acme').authUrl);
    expect(new URL(location).searchParams.get('redirect_uri')).toBe(`${url}/callback/acme`);
    expect(service.requests).toEqual([]);
  });

  test.for<[what: string, change: (port: number) => object]>([
    ['another host', (port) => ({ authUrl: `http://evil.localhost.test:${port}` })],
    ['another host of the API', (port) => ({ baseUrl: `https://evil.example:${port}` })],
    ['another port', () => ({ baseUrl: 'http://acme.localhost:1' })],
    ['the domain itself', (port) => ({ authUrl: `http://localhost:${port}` })],
    ['user info', (port) => ({ baseUrl: `http://a:b@acme.localhost:${port}` })],
    ['an address', (port) => ({ tokenPath: `http://127.0.0.1:${port}/oauth/token` })],
    ['an address in hexadecimal', (port) => ({ tokenPath: `http://0x7f.1:${port}/oauth/token` })],
    ['an address of IPv6', (port) => ({ revocationPath: `http://[::1]:${port}/oauth/revoke` })],
    ['a further origin', (port) => ({ origins: [`http://127.0.0.1:${port}`] })],
    ['a template', (port) => ({ enterpriseBaseUrl: `http://{domain}.evil:${port}` })],
  ])('by a directory that names %s is ERR_TENANT_HOST, and nothing is sent', async ([, change]) => {
    const { url, service, shops } = await openShops({
      resolve: (_tenant, usual) =>
        usual && { ...usual, ...change(Number(new URL(Reflect.get(usual, 'authUrl')).port)) },
    });
    const page = await rawRequest(url, '/shops/acme/login', { headers: { accept: 'application/json' } });
    expect([page.status, JSON.parse(page.text).error]).toEqual([500, 'ERR_TENANT_HOST']);
    await expect(shops.client({ tenant: 'acme', grantId: '1' }).get('/user')).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'ERR_TENANT_HOST',
    });
    expect(service.requests).toEqual([]);
  });

  test('by a public name that leads to this machine is refused, unless it is listed exactly', async () => {
    const name = hostname().toLowerCase();
    const resolve = () => ({
      authUrl: `https://${name}`,
      baseUrl: `https://${name}`,
      clientID: 'x',
      clientSecret: 'y',
    });
    const open = (allowedHosts: string[]) => {
      const rest = { scope: '', tenantOf: () => 'acme', callbackURL: 'https://app.example.net/{tenant}', resolve };
      const shops = tenants({ ...rest, allowedHosts, tokenStore: memoryTokenStore() });
      onTestFinished(() => shops.close());
      return shops.grant({ tenant: 'acme', grantId: '1' });
    };
    expect(await open([name])).toBeUndefined();
    if (name.includes('.'))
      await expect(open([`*.${name.split('.').slice(1).join('.')}`])).rejects.toMatchObject({
        code: 'ERR_TENANT_HOST',
      });
  });
});

describe('the directory', () => {
  test.each<[answer: unknown, message: string]>([
    ...[5, false, 'secret'].map((one): [unknown, string] => [one, `or undefined, got ${typeof one}`]),
    [[], 'or undefined, got an array'],
    [{}, 'authUrl: expected'],
    [{ name: 'x' }, 'expected no option name'],
  ])('that returns %j is named, with the tenant', async (answer, message) => {
    const { shops } = await openShops({ resolve: () => answer });
    const error = await shops.grant({ tenant: 'acme', grantId: '1' }).catch((one) => one);
    expect(error).toMatchObject({ name: 'ConfigurationError', message: expect.stringMatching(/^resolve.* for acme/) });
    expect(error.message).toContain(message);
  });

  test('is asked once by many, again after ttl, and at once after forget()', async () => {
    let now = Date.now();
    const { shops, asked } = await openShops({ options: { ttl: 60, clock: () => now } });
    const ask = () => shops.grant({ tenant: 'acme', grantId: '1' });
    await Promise.all(Array.from({ length: 20 }, ask));
    expect(asked).toEqual(['acme']);
    now += 61_000;
    await ask();
    shops.forget('Acme');
    await ask();
    expect(asked).toEqual(['acme', 'acme', 'acme']);
  });

  test('that fails leaves a ready tenant for ttl, and is a 503 then; grants are kept', async () => {
    let now = Date.now();
    let isDown = false;
    const { shops, browser, logIn, me, url } = await openShops({
      options: { ttl: 60, clock: () => now },
      resolve: (_tenant, usual) => {
        if (isDown) throw new Error('down');
        return usual;
      },
    });
    await logIn(browser, 'acme');
    isDown = true;
    now += 61_000;
    expect(await me(browser, 'acme')).toMatchObject({ authorized: true });
    now += 61_000;
    const page = await browser.visit(`${url}/shops/acme/projects`, { headers: { accept: 'application/json' } });
    expect([page.status, page.json().error]).toEqual([503, 'ERR_TENANT_UNAVAILABLE']);
    isDown = false;
    expect(await me(browser, 'acme')).toMatchObject({ authorized: true });
    isDown = true;
    shops.forget('acme');
    await expect(shops.client({ tenant: 'acme', grantId: '1' }).get('/user')).rejects.toMatchObject({
      name: 'ServiceUnavailableError',
      code: 'ERR_TENANT_UNAVAILABLE',
    });
    await expect(shops.deleteTenant('acme')).resolves.toBeUndefined();
    expect((await all(shops.grants({ tenant: 'acme' }))).filter(({ ended }) => !ended)).toEqual([]);
  });

  test('may change a secret: the next refresh sends the new one', async () => {
    let now = Date.now();
    let clientSecret = 'acme-client-secret';
    const { browser, logIn, url, service } = await openShops({
      options: { ttl: 60, clock: () => now },
      resolve: (_tenant, usual) => usual && { ...usual, clientSecret },
    });
    await logIn(browser, 'acme');
    clientSecret = 'another secret';
    now += 61_000;
    service.expireAccessTokens();
    await browser.visit(`${url}/shops/acme/projects`);
    expect(
      service.requests.find(({ body }) => Reflect.get(Object(body), 'grant_type') === 'refresh_token')?.body,
    ).toMatchObject({
      client_secret: clientSecret,
    });
  });

  test('may move a tenant: a valid token serves to its end, then ERR_TENANT_CHANGED, and nothing is sent to the new host', async () => {
    let now = Date.now();
    let host = 'acme';
    const { browser, logIn, url, service, shops, requestsTo } = await openShops({
      options: { ttl: 60, clock: () => now },
      resolve: (_tenant, usual) =>
        usual && {
          ...usual,
          revocationPath: '/oauth/revoke',
          authUrl: String(Reflect.get(usual, 'authUrl')).replace('acme', host),
        },
    });
    await logIn(browser, 'acme');
    const data = () => browser.visit(`${url}/shops/acme/projects`, { headers: { accept: 'application/json' } });
    host = 'globex';
    now += 61_000;
    expect((await data()).status).toBe(200);
    now += 7200_000;
    expect((await data()).status).toBe(401);
    const [{ grantId = '' } = {}] = await all(shops.grants({ tenant: 'acme' }));
    const call = shops.client({ tenant: 'acme', grantId }).get('/user');
    await expect(call).rejects.toMatchObject({ name: 'NotAuthorizedError', code: 'ERR_TENANT_CHANGED', status: 401 });
    expect(requestsTo('globex')).toEqual([]);
    host = 'acme';
    now += 61_000;
    expect((await data()).status).toBe(200);
    host = 'globex';
    now += 61_000;
    await shops.deleteTenant('acme');
    // A revocation would be waited for.
    await shops.close();
    expect([...requestsTo('globex'), ...requestsTo('globex', '/oauth/revoke')]).toEqual([]);
    expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(2);
  });

  test('knows no such tenant: a login and a job are 404, a page has no grant', async () => {
    const { url, shops, browser, me } = await openShops();
    const page = await browser.visit(`${url}/shops/unknown/login`, { headers: { accept: 'application/json' } });
    expect([page.status, page.json().error]).toEqual([404, 'ERR_UNKNOWN_TENANT']);
    expect(await me(browser, 'unknown')).toMatchObject({ authorized: false });
    await expect(shops.client({ tenant: 'unknown', grantId: '1' }).get('/user')).rejects.toMatchObject({
      code: 'ERR_UNKNOWN_TENANT',
      status: 404,
      strategy: 'shop',
    });
    expect((await browser.visit(`${url}/latest/login`, { headers: { accept: 'application/json' } })).json().error).toBe(
      'ERR_UNKNOWN_TENANT',
    );
  });

  test('leaves it to the strategy of a tenant to refuse a request without headers and response', async () => {
    const { shops } = await openShops();
    const request = { method: 'GET', url: '/login', params: { shop: 'acme' } };
    const answer = new Promise((error) => {
      const actions = { success: error, fail: error, redirect: error, error };
      Object.assign(Object.create(shops), actions).authenticate(request);
    });
    expect(await answer).toMatchObject({ code: 'ERR_NO_RESPONSE', strategy: 'shop' });
  });
});

describe('outside of a request', () => {
  const tokens = (expiresAt = Date.now() + 3_600_000) => ({
    accessToken: 'imported',
    refreshToken: 'unknown',
    expiresAt,
  });

  test('a job in another process needs tenant and id alone', async () => {
    const { browser, logIn, tokenStore, service, shops } = await openShops();
    await logIn(browser, 'acme');
    const [{ grantId = '' } = {}] = await all(shops.grants({ tenant: 'acme' }));
    await shops.close();
    const job = await openShops({ running: service, tokenStore });
    const client = job.shops.client({ tenant: 'acme', grantId });
    expect(client).toMatchObject({ tenant: 'acme', grantId, authorized: true });
    expect(await client.get('/user')).toMatchObject({ data: { id: '1' } });
    expect(client.baseUrl).toBe(`${service.optionsOf('acme').baseUrl}/api/v2`);
    service.expireAccessTokens();
    expect(await all(client.paginate('/projects'))).toHaveLength(3);
  });

  test('grants are listed, imported and deleted by tenant; a name and a tenant are never another', async () => {
    const { shops } = await openShops({
      resolve: (tenant, usual) =>
        usual ??
        (tenant.startsWith('acme')
          ? { authUrl: 'http://acme.localhost:1', baseUrl: 'http://acme.localhost:1', clientID: 'x', clientSecret: 'y' }
          : undefined),
      options: { allowedHosts: ['*.localhost:1', '*.localhost'], tenantOf: () => undefined },
    });
    for (const tenant of ['acme.1', 'acme.10', 'acme-1'])
      expect(await shops.importGrant({ tenant, grantId: 'a+b' }, tokens())).toBe(true);
    expect((await all(shops.grants())).map(({ tenant }) => tenant).toSorted()).toEqual(['acme-1', 'acme.1', 'acme.10']);
    expect(await all(shops.grants({ tenant: 'acme.1' }))).toMatchObject([{ grantId: 'a+b', tenant: 'acme.1' }]);
    await shops.deleteTenant('acme.1');
    await shops.deleteGrant({ tenant: 'acme-1', grantId: 'a+b' });
    expect((await all(shops.grants())).filter(({ ended }) => !ended)).toMatchObject([{ tenant: 'acme.10' }]);
  });

  test('events and errors name strategy and tenant', async () => {
    const events: unknown[] = [];
    const listen = (event: unknown) => events.push(event);
    const channels = ['login', 'grant', 'api', 'refresh'].map((name) => `passport-oauth-app:${name}`);
    for (const name of channels) subscribe(name, listen);
    onTestFinished(() => {
      for (const name of channels) unsubscribe(name, listen);
    });
    const { browser, logIn, url, service } = await openShops();
    await logIn(browser, 'acme');
    service.expireAccessTokens();
    await browser.visit(`${url}/shops/acme/projects`);
    expect(events.length).toBeGreaterThan(4);
    for (const event of events) expect(event).toMatchObject({ strategy: 'shop', tenant: 'acme' });
  });

  test('keepAlive refreshes the grants of one tenant, or of all', async () => {
    const { logIn, shops, requestsTo } = await openShops();
    for (const tenant of ['acme', 'globex']) await logIn(new Browser(), tenant);
    expect(await shops.keepAlive({ tenant: 'acme', olderThan: 0 })).toMatchObject({ seen: 1, refreshed: 1 });
    expect(requestsTo('globex')).toHaveLength(1);
    expect(await shops.keepAlive({ olderThan: 0 })).toMatchObject({ seen: 2, refreshed: 2 });
    expect(requestsTo('globex')).toHaveLength(2);
  });
});

describe('a provider', () => {
  // The token response names the API's address.
  const enterpriseBaseUrl = (_claims: unknown, { instance_url: url }: Readonly<Record<string, unknown>>) => url;
  const salesforceOf = { ...salesforce, enterpriseBaseUrl };

  test.for<[name: 'salesforce' | 'zendesk' | 'shopify', id: string, api: string]>([
    ['salesforce', 'https://login.salesforce.com/id/00D000000000001EAA/1', '/services/data'],
    ['zendesk', '1', '/api/v2'],
    ['shopify', 'gid://shopify/Shop/acme', '/admin/api'],
  ])('%s logs in at its tenant, calls its API and refreshes', async ([name, id, apiPath]) => {
    const { browser, logIn, me, url, service, requestsTo } = await openShops({
      service: { profile: name },
      options: { salesforce: salesforceOf, zendesk, shopify }[name],
    });
    await logIn(browser, 'acme');
    const baseUrl = `${service.optionsOf('acme').baseUrl}${apiPath}`;
    expect(await me(browser, 'acme')).toMatchObject({ authorized: true, baseUrl, user: { id, tenant: 'acme' } });
    service.expireAccessTokens();
    expect((await browser.visit(`${url}/shops/acme/projects`)).status).toBe(200);
    expect(requestsTo('acme', `${apiPath}/projects`)).toHaveLength(2);
    service.revoke('1');
    const lost = await browser.visit(`${url}/shops/acme/projects`, { headers: { accept: 'application/json' } });
    expect(lost.status).toBe(401);
  });

  test('salesforce names an address outside of allowedHosts: the login fails, and no token goes there', async () => {
    const users = [{ id: '1', name: 'Ada', tokenFields: { instance_url: 'https://evil.example' } }];
    const { browser, logIn, me } = await openShops({
      service: { profile: 'salesforce', users },
      options: salesforceOf,
    });
    expect((await logIn(browser, 'acme')).status).toBe(502);
    expect(await me(browser, 'acme')).toMatchObject({ authorized: false });
  });

  test.skipIf(!hasRedis())(
    'salesforce revokes at a reuse: of twenty callers in two processes one refreshes, and the login lives',
    async () => {
      const server = await startRedis();
      onTestFinished(() => server.stop());
      const shared = { redis: server.url, lease: 30 };
      const { tokenStore, close } = await openStore(shared);
      onTestFinished(async () => void (await close()));
      const { browser, logIn, shops, service, requestsTo } = await openShops({
        ...{ service: { profile: 'salesforce' }, tokenStore, options: salesforce },
      });
      await logIn(browser, 'acme');
      const [{ grantId = '' } = {}] = await all(shops.grants({ tenant: 'acme' }));
      const settings = { tenant: 'acme', ...service.optionsOf('acme') };
      const workers = await Promise.all([1, 2].map(() => Worker.start(shared, settings)));
      onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.release()))));
      for (const refreshes of [1, 2]) {
        // Both processes have the pair that ends.
        for (const worker of workers) expect(await worker.ask(grantId)).toMatchObject({ status: 200 });
        service.expireAccessTokens();
        const answers = await Promise.all(
          Array.from({ length: 10 }, () => workers.map((one) => one.ask(grantId))).flat(),
        );
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
        expect(requestsTo('acme', '/services/oauth2/token')).toHaveLength(1 + refreshes);
      }
    },
  );
});

describe('many tenants', () => {
  test('beside one whose token endpoint hangs notice nothing, 100 of them', async () => {
    const names = Array.from({ length: 101 }, (_, number) => `t${number}`);
    const { logIn, url, service } = await openShops({ service: { tenants: names }, options: { timeout: 100_000 } });
    const browsers = await Promise.all(
      names.map(async (tenant) => {
        const browser = new Browser();
        await logIn(browser, tenant);
        return { tenant, browser };
      }),
    );
    service.fail('token', { hang: true, tenant: 't0', times: Number.POSITIVE_INFINITY });
    service.expireAccessTokens();
    const visits = browsers.map(({ tenant, browser }) => browser.visit(`${url}/shops/${tenant}/projects`));
    let isAnswered = false;
    visits[0]?.catch(() => {}).finally(() => (isAnswered = true));
    const answers = await Promise.all(visits.slice(1));
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200));
    expect(isAnswered).toBe(false);
    await service.close();
  });

  test('that are dropped lose no refresh that runs, and clients go on', async () => {
    const { shops, logIn, service, requestsTo, asked } = await openShops({ options: { max: 1 } });
    await logIn(new Browser(), 'acme');
    const [{ grantId = '' } = {}] = await all(shops.grants({ tenant: 'acme' }));
    service.expireAccessTokens();
    const release = hold(service, 'token');
    const client = shops.client({ tenant: 'acme', grantId });
    const call = client.get('/user');
    await expect.poll(() => requestsTo('acme')).toHaveLength(2);
    await shops.grant({ tenant: 'globex', grantId: '1' });
    // Another strategy of the tenant joins the refresh that runs.
    const another = client.get('/user');
    await expect.poll(() => asked.filter((name) => name === 'acme').length).toBeGreaterThan(1);
    release();
    expect(await Promise.all([call, another])).toHaveLength(2);
    expect(requestsTo('acme')).toHaveLength(2);
  });

  // A pool of two connections, or one, and one for changes.
  test.for<[store: string, isInstalled: boolean, open: () => Promise<[TokenStore, () => Promise<number>]>]>([
    [
      'Redis',
      hasRedis(),
      async () => {
        const server = await startRedis();
        onTestFinished(() => server.stop());
        const client = await createClient({ url: server.url }).connect();
        onTestFinished(() => client.destroy());
        const list = async () => String(await client.sendCommand(['CLIENT', 'LIST'])).trim();
        return [redisTokenStore(client), async () => (await list()).split('\n').length - 1];
      },
    ],
    [
      'PostgreSQL',
      hasPostgres(),
      async () => {
        const server = await startPostgres();
        onTestFinished(() => server.stop());
        const pool = new pg.Pool({ connectionString: server.connectionString, max: 2 });
        onTestFinished(() => pool.end());
        const text = "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend'";
        return [postgresTokenStore(pool), async () => Number((await pool.query(text)).rowCount) - pool.totalCount];
      },
    ],
  ])(
    'over %s, 60 of which half are ready, take one connection beside those of the store',
    async ([, isInstalled, open], { skip }) => {
      skip(!isInstalled);
      const [tokenStore, furtherConnections] = await open();
      const options = { max: 30 };
      const { service, shops } = await openShops({ tokenStore, options, resolve: () => service.optionsOf('acme') });
      const names = Array.from({ length: 60 }, (_, number) => `t${number}`);
      const tokens = { accessToken: 'a', refreshToken: 'r', expiresAt: Date.now() + 3_600_000 };
      while (names.length > 0)
        await Promise.all(names.splice(0, 10).map((tenant) => shops.importGrant({ tenant, grantId: '1' }, tokens)));
      expect(await furtherConnections()).toBe(1);
      expect(await all(shops.grants({ tenant: 't0' }))).toHaveLength(1);
      await shops.close();
      await expect.poll(furtherConnections).toBe(0);
    },
  );
});

test('embedded() refuses tenants, and an error of tenantOf goes to the application', async () => {
  const tenantOf = async () => {
    throw new Error('of tenantOf');
  };
  const { shops, url } = await openShops({ options: { tenantOf } });
  const options = { path: '/frame', login: '/login', frameAncestors: ['https://a.example.com'] };
  expect(() => embedded(shops as never, options)).toThrow(expect.objectContaining({ name: 'ConfigurationError' }));
  for (const path of ['/shops/acme/me', '/shops/acme/login'])
    expect((await rawRequest(url, path)).text).toContain('Error: of tenantOf');
});

test.for<[what: string, options: Partial<TenantsOptions>, message: RegExp]>([
  ['no directory', { resolve: undefined as never }, /^resolve: /],
  ['no hosts', { allowedHosts: [] }, /^allowedHosts: expected a list of host names/],
  ['a pattern in the middle', { allowedHosts: ['a.*.com'] }, /^allowedHosts: /],
  ['a host that is no text', { allowedHosts: ['*.a.com', 5 as never] }, /^allowedHosts: /],
  ['a callback URL with a password', { callbackURL: 'https://u:p@app.example.net/{tenant}' }, /^callbackURL: /],
  ['no token store', { tokenStore: undefined as never }, /^tokenStore: /],
  ['an unknown option', { tenantOff: 1 } as never, /tenantOff/],
  [
    'one callback URL for tenants of two domains',
    { callbackURL: 'https://app.example.net/callback', allowedHosts: ['*.a.com', '*.b.com'] },
    /^callbackURL: expected \{tenant\} in it/,
  ],
])('tenants() refuses %s', ([, options, message]) => {
  const rest = { tenantOf: () => 'a', resolve: () => undefined, callbackURL: 'https://app.example.net/{tenant}' };
  const all = { scope: '', allowedHosts: ['*.a.com'], tokenStore: memoryTokenStore(), ...rest, ...options };
  expect(() => tenants(all)).toThrow(
    expect.objectContaining({ name: 'ConfigurationError', message: expect.stringMatching(message) }),
  );
});
