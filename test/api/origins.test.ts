import { ConfigurationError, Strategy } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import * as faulty from '../support/faulty-server.js';
import { threats } from '../support/threats.js';
import { createFixture, credentialOf, MemorySource, startServer, tokenOf } from './fixture.js';

/** A client of an API, a further origin of the service for each organization, and one for all. */
async function start(organizationDomain?: string) {
  const [api, mcp] = [await startServer(), await startServer()];
  const origins = [`http://{domain}.mcp.localhost:${mcp.port}`, `http://ai.localhost:${mcp.port}`];
  const source = new MemorySource(credentialOf('first', organizationDomain));
  const fixture = createFixture(api.origin, { source, origins });
  return { ...fixture, api, mcp, urlOf: (host: string, path = '/mcp') => `http://${host}:${mcp.port}${path}` };
}

describe('URLs of the option origins', threats(27, 67), () => {
  test('get the token of the organization that they name, by fetch and as the next page of a list', async () => {
    const { client, api, mcp, urlOf } = await start('acme');
    const response = await client.fetch(urlOf('acme.mcp.localhost', '/mcp?session=1'), { method: 'POST', body: 'x' });
    expect([response.status, response.url]).toEqual([200, urlOf('acme.mcp.localhost', '/mcp?session=1')]);
    await client.fetch(new URL(urlOf('ai.localhost', '/v1/chat')));
    api.next(faulty.json({ data: [{ data: 1 }] }));
    mcp.next(faulty.json({ data: [] }));
    const next = (_page: unknown, { data }: { data: unknown }) =>
      JSON.stringify(data).includes('1') ? urlOf('ai.localhost', '/more') : undefined;
    for await (const item of client.paginate('/list', { next })) expect(item).toBe(1);
    expect(mcp.requests.map(({ target, headers }) => [headers.host, target, headers.authorization])).toEqual([
      [`acme.mcp.localhost:${mcp.port}`, '/mcp?session=1', `Bearer ${tokenOf('first')}`],
      [`ai.localhost:${mcp.port}`, '/v1/chat', `Bearer ${tokenOf('first')}`],
      [`ai.localhost:${mcp.port}`, '/more', `Bearer ${tokenOf('first')}`],
    ]);
  });

  test('are renewed after a 401 and follow redirects of their own origin, and no others', async () => {
    const { client, api, mcp, source, urlOf } = await start('acme');
    mcp.next(faulty.json({}, 401));
    mcp.next(faulty.answer(302, { location: '/there' }));
    mcp.next(faulty.answer(302, { location: `${api.origin}/api/v2/projects` }));
    const response = await client.fetch(urlOf('acme.mcp.localhost'));
    expect([response.status, response.url]).toEqual([302, urlOf('acme.mcp.localhost', '/there')]);
    expect([source.refreshes, mcp.requests.length, api.requests.length]).toEqual([1, 3, 0]);
  });

  test.for([
    ['another organization', 'acme', 'other.mcp.localhost'],
    ['a user without an organization', undefined, 'acme.mcp.localhost'],
    ['the placeholder itself', undefined, 'undefined.mcp.localhost'],
    ['a host below', 'acme', 'x.acme.mcp.localhost'],
    ['a host above', 'acme', 'mcp.localhost'],
    ['another host of the service', 'acme', 'evil-ai.localhost'],
    ['a host that ends alike', 'acme', 'ai.localhost.evil.example'],
    ['no dot', 'acme', 'acmemcp.localhost'],
  ] as const)('send nothing to %s', async ([, organization, host]) => {
    const { client, mcp, api, urlOf } = await start(organization);
    await expect(client.fetch(urlOf(host))).rejects.toThrow(TypeError);
    await expect(client.fetch(urlOf('ai.localhost').replace('http', 'https'))).rejects.toThrow(/nor on one of/);
    await expect(client.get(urlOf('ai.localhost'))).rejects.toThrow(TypeError);
    expect([mcp.requests, api.requests]).toEqual([[], []]);
  });

  test.for(['a.b', 'evil.example/', 'acme@', '-', 'ACME', 'x'.repeat(64), ''])(
    'send nothing for the domain %j, which is no DNS label',
    async (domain) => {
      const { client, mcp, urlOf } = await start(domain);
      await expect(client.fetch(urlOf('acme.mcp.localhost'))).rejects.toThrow(/DNS label|not on the origin/);
      expect(mcp.requests).toEqual([]);
    },
  );
});

describe('the option origins', () => {
  const options = {
    ...{ authUrl: 'https://auth.example', baseUrl: 'https://api.example', clientID: 'id', clientSecret: 'secret' },
    ...{ callbackURL: 'https://app.example/callback', scope: 'tm' },
  };

  test.for([
    ['https://mcp.example.com'],
    [{}],
    [['mcp.example.com']],
    [['http://mcp.example.com']],
    [['https://mcp.example.com/mcp']],
    [['https://user:password@mcp.example.com']],
    [['https://x-{domain}.example.com']],
    [['https://{domain}']],
    [['https://mcp.{domain}']],
    [['https://{domain}.{domain}.example.com']],
    [['https://{tenant}.example.com']],
    [['https://*.example.com']],
    [['https://mcp.example.com', 7]],
  ])('refuses %j', ([origins]) => {
    const create = () => new Strategy({ ...options, origins } as never);
    expect(create).toThrow(ConfigurationError);
    expect(create).toThrow(/^origins: expected/);
  });

  test('takes origins with and without an organization', async () => {
    const origins = ['https://{domain}.mcp.example.com', 'https://AI.example.com/', 'http://localhost:8080'];
    const strategy = new Strategy({ ...options, origins });
    await strategy.close();
  });
});

describe('accessToken({ refused })', () => {
  test('renews the token that the service has just refused, once for all that ask', async () => {
    const { client, source } = await start();
    const refused = await client.accessToken();
    const tokens = await Promise.all([client.accessToken({ refused }), client.accessToken({ refused })]);
    expect(tokens).toEqual([tokenOf('refresh-1'), tokenOf('refresh-1')]);
    // Late with a token that was replaced meanwhile.
    expect(await client.accessToken({ refused })).toBe(tokenOf('refresh-1'));
    expect(await client.accessToken()).toBe(tokenOf('refresh-1'));
    expect(source.refreshes).toBe(1);
  });

  test('rejects if there is no other one, and reports a renewed one that is refused too', async () => {
    const { client, source } = await start();
    const refused = await client.accessToken({ refused: await client.accessToken() });
    source.renew = (current) => Promise.resolve(current);
    const error = { name: 'NotAuthorizedError', strategy: 'oauth-app', message: expect.not.stringContaining(refused) };
    await expect(client.accessToken({ refused })).rejects.toMatchObject(error);
    expect(source.settledWith).toEqual([false]);
    await expect(client.accessToken({ refused: 7 as never })).rejects.toThrow(TypeError);
  });
});
