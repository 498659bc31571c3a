import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { ConfigurationError, memoryTokenStore, Strategy, type StrategyOptions } from 'passport-oauth-app';
import { Agent, type Dispatcher } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type FaultyServer, json, startFaultyServer } from '../support/faulty-server.js';
import { open, visit, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';

const HOSTS = ['api.example.com', '*.my.example.com', '*.ports.example.com:8443', '10.0.0.7'];

type Token = Record<string, unknown>;

/** Logs a user in at a token endpoint that names the address of the API, and answers anything else with the request's Host. */
async function logInAt(instanceUrl: (server: FaultyServer) => unknown, options: Partial<StrategyOptions> = {}) {
  const server = await startFaultyServer();
  onTestFinished(() => server.close());
  server.always((socket, { target, headers }) => {
    const tokens = { access_token: 'opaque', refresh_token: 'r', expires_in: 60, instance_url: instanceUrl(server) };
    json(target === '/oauth/token' ? tokens : { id: 'ada', host: headers.host })(socket, { target } as never);
  });
  await open({
    strategy: {
      authUrl: server.origin,
      baseUrl: server.origin,
      enterpriseBaseUrl: (_claims: unknown, token: Token) => token.instance_url,
      enterpriseHosts: [...HOSTS, `*.localhost:${server.port}`],
      userProfile: (client) => client.get<{ id: string; host: string }>('/user'),
      tokenStore: memoryTokenStore(),
      grantId: (_req, user: object) => Reflect.get(user, 'id'),
      // Not the emulator's options, which allow only its own hosts.
      ...{ [Symbol.for('passport-oauth-app.emulator')]: undefined },
      ...options,
    },
  });
  const login = await visit('/login');
  const state = new URL(login.headers.get('location') ?? '').searchParams.get('state');
  return { server, page: await visit(`/callback?code=c&state=${state}`) };
}

/** A dispatcher that records where requests go. */
function recording(): { readonly dispatcher: Dispatcher; readonly origins: string[] } {
  const origins: string[] = [];
  const dispatcher = new Agent().compose((dispatch) => (options, handler) => {
    origins.push(String(options.origin));
    return dispatch(options, handler);
  });
  return { dispatcher, origins };
}

describe('an API address that the token response names', threats(27), () => {
  test('gets the calls of its user, at each refresh anew, in the header of the option', async () => {
    let organization = 'acme';
    const { server, page } = await logInAt(({ port }) => `http://${organization}.localhost:${port}/`, {
      accessTokenHeader: 'X-Shopify-Access-Token',
    });
    expect(page.status).toBe(302);
    expect((await whoami()).baseUrl).toBe(`http://acme.localhost:${server.port}/api/v2`);
    const { authorization, 'x-shopify-access-token': token, host } = server.requests[1]?.headers ?? {};
    expect([authorization, token, host]).toEqual([undefined, 'opaque', `acme.localhost:${server.port}`]);
    const client = world.strategy.client('ada');
    const sent = server.requests.length;
    const headers = { 'x-shopify-access-TOKEN': 'mine' };
    await expect(client.get('/user', { headers })).rejects.toThrow(/^headers: x-shopify-access-token is set/);
    await expect(client.fetch('/user', { headers })).rejects.toThrow(TypeError);
    expect(server.requests).toHaveLength(sent);
    organization = 'globex';
    await client.accessToken({ refused: 'opaque' }).catch(() => undefined);
    expect(await client.get('/user')).toEqual({ id: 'ada', host: `globex.localhost:${server.port}` });
  });

  test.for<unknown>([
    'https://evil.example',
    'https://my.example.com',
    'https://evilmy.example.com',
    'https://a.my.example.com.evil.example',
    'https://a.my.example.com@evil.example',
    'https://user:password@a.my.example.com',
    'https://evil.example\\.my.example.com',
    'https://evil.example/.my.example.com',
    'https://a.my.example.com:8443',
    'https://a.ports.example.com',
    'https://a..my.example.com',
    'https://-a.my.example.com',
    'https://\u0430pi.example.com',
    'https://a.my.example.com/?x=',
    'https://a.my.example.com/#x',
    'http://a.my.example.com',
    'https://0x7f.1',
    'https://2130706433',
    'https://[::ffff:127.0.0.1]',
    'https://169.254.169.254',
    'https://10.0.0.8',
    '//a.my.example.com',
    'javascript:alert(1)',
    ['https://a.my.example.com'],
    7,
  ])('is refused before any request to it: %j', async (address) => {
    const { dispatcher, origins } = recording();
    const { server, page } = await logInAt(() => address, { dispatcher });
    expect([page.status, page.json().code]).toEqual([502, 'ERR_ORGANIZATION_DOMAIN']);
    expect(origins).toEqual([server.origin]);
  });

  test.for([
    ['a.my.example.com', '127.0.0.1', 'ERR_ORGANIZATION_DOMAIN'],
    ['a.my.example.com', '10.1.2.3', 'ERR_ORGANIZATION_DOMAIN'],
    ['a.my.example.com', '169.254.169.254', 'ERR_ORGANIZATION_DOMAIN'],
    ['a.my.example.com.', '::ffff:127.0.0.1', 'ERR_ORGANIZATION_DOMAIN'],
    ['a.my.example.com', 'fd00::1', 'ERR_ORGANIZATION_DOMAIN'],
    // One that is listed exactly may be anywhere: no connection is there.
    ['api.example.com', '127.0.0.1', 'ERR_SERVICE_UNAVAILABLE'],
  ] as const)('%s that leads to %s ends in %s', async ([host, address, code]) => {
    const found = [{ address, family: address.includes(':') ? 6 : 4 }];
    const { lookup } = dns;
    const spy = vi.spyOn(dns, 'lookup').mockImplementation(((...asked: Parameters<typeof lookup>) => {
      if (!/example\.com\.?$/.test(asked[0])) return lookup(...asked);
      const callback: unknown = asked.at(-1);
      if (typeof callback === 'function') callback(null, found);
    }) as never);
    syncBuiltinESMExports();
    onTestFinished(() => {
      spy.mockRestore();
      syncBuiltinESMExports();
    });
    const { page } = await logInAt(() => `https://${host}`);
    expect(page.json().code).toBe(code);
  });

  test('is checked again when it is read from the store', async () => {
    const tokenStore = memoryTokenStore();
    const { server } = await logInAt(({ port }) => `http://acme.localhost:${port}`, { tokenStore, cache: false });
    for await (const id of tokenStore.list()) {
      const record = await tokenStore.get(id);
      const content = Buffer.from(record?.sealed ?? '', 'base64url').toString();
      const sealed = Buffer.from(content.replace(/http:\/\/acme[^"]*/, 'https://evil.example')).toString('base64url');
      if (record) await tokenStore.set(id, { ...record, sealed });
    }
    const sent = server.requests.length;
    const edited = world.strategy.client('ada').get('/user');
    await expect(edited).rejects.toMatchObject({ code: 'ERR_ORGANIZATION_DOMAIN' });
    expect(server.requests).toHaveLength(sent);
  });
});

test.for<[Partial<Record<keyof StrategyOptions, unknown>>, RegExp]>([
  [{ enterpriseBaseUrl: () => undefined }, /^enterpriseHosts: expected together/],
  [{ enterpriseHosts: ['api.example.com'] }, /^enterpriseHosts: expected together/],
  ...[
    [],
    '*.example.com',
    ['*'],
    ['*.'],
    ['*.com'],
    ['*.10.0.0.1'],
    ['https://a.example'],
    ['a.example/x'],
    ['*.*.a.example'],
    ['a b'],
    [5],
    [null],
  ].map((enterpriseHosts): [object, RegExp] => [
    { enterpriseBaseUrl: () => '', enterpriseHosts },
    /^enterpriseHosts: expected/,
  ]),
  ...['Host', 'Cookie', 'x y', '', 7].map((accessTokenHeader): [object, RegExp] => [
    { accessTokenHeader },
    /^accessTokenHeader: expected/,
  ]),
  [{ accessTokenHeader: 'X-Token', headers: { 'x-token': 'a' } }, /^headers: expected no header x-token/],
])('%j is a ConfigurationError', ([options, message]) => {
  const common = { authUrl: 'https://a.example', baseUrl: 'https://b.example', clientID: 'id', clientSecret: 's' };
  const create = () =>
    new Strategy({ ...common, callbackURL: '/callback', scope: 'tm', ...options } as StrategyOptions);
  expect(create).toThrow(ConfigurationError);
  expect(create).toThrow(message);
});
