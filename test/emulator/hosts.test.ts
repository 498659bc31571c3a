import { lookup } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import { threats } from '../support/threats.js';
import { body, projects, rawGet, service, startService, tokensFor } from './plain-client.js';

const pages = ['/', '/_emulator/requests', '/_emulator/openapi.json', '/oauth/authorize'];

describe('hosts that are not the emulator’s', threats(68), () => {
  test.each(['evil.example', 'evil.example:4000', '192.168.1.5', 'localhost.evil.example', '[::2]', 'xlocalhost'])(
    'a request for the host %s gets nothing (DNS rebinding)',
    async (host) => {
      await startService();
      for (const path of [...pages, '/api/v2/projects']) expect((await rawGet(path, { host })).status).toBe(421);
    },
  );

  test.each(['localhost', 'LOCALHOST:1', '127.0.0.1:9', '127.1.2.3', '[::1]:80', 'anything.localhost', 'localhost.'])(
    'the loopback name %s is served',
    async (host) => {
      await startService();
      expect((await rawGet('/api/v2/projects', { host })).status).toBe(401);
    },
  );

  test('allowRemote serves the API and the token endpoint for every host', async () => {
    await startService({ allowRemote: true });
    for (const host of ['192.168.1.5:4000', 'emulator:4000', 'acme.api.emulator']) {
      expect((await rawGet('/api/v2/projects', { host })).status).toBe(401);
    }
    const notPost = { status: 405, headers: { allow: 'POST' } };
    expect(await rawGet('/oauth/token', { host: 'emulator:4000' })).toMatchObject(notPost);
  });

  test.each([
    ...['evil.example', 'emulator:4000', 'evil.example:4000', '1.2.3.4.evil.example', '0x7f.1', '[::1].evil.example'],
  ])(
    'allowRemote shows no page to a browser at %s, and lets it control nothing (DNS rebinding)',
    threats(82),
    async (host) => {
      await startService({ allowRemote: true });
      for (const path of pages) expect((await rawGet(path, { host })).status).toBe(421);
    },
  );

  test.each([
    ...['localhost', 'a.localhost:4000', '127.0.0.1', '[::1]:4000', '192.168.1.5:4000', '[2001:db8::1]', '0.0.0.0'],
  ])('allowRemote has its pages and its control at %s', async (host) => {
    await startService({ allowRemote: true, host: '0.0.0.0' });
    for (const path of pages) expect((await rawGet(path, { host })).status).not.toBe(421);
  });

  test.each(['0.0.0.0', '::'])('allowRemote listens on %s, and the addresses name loopback', async (host) => {
    await startService({ allowRemote: true, host }).catch(() => startService({ allowRemote: true, host: '0.0.0.0' }));
    expect(new URL(service.authUrl).hostname).toBe('127.0.0.1');
    await tokensFor();
  });
});

describe('organizations', () => {
  test('with allowRemote, the first label before .api. is the organization', async () => {
    await startService({ allowRemote: true });
    const { access_token } = await tokensFor('2');
    const authorization = `Bearer ${access_token}`;
    expect((await rawGet('/api/v2/user', { host: 'acme.api.emulator:4000', authorization })).status).toBe(200);
    expect((await rawGet('/api/v2/user', { host: 'globex.api.emulator:4000', authorization })).status).toBe(403);
  });

  test('domainHosts: path has the organization in the path, for clients that cannot resolve *.localhost', async () => {
    await startService({ domainHosts: 'path' });
    expect(service.enterpriseBaseUrl).toBe(`${service.baseUrl}/organizations/{domain}`);
    const [ada, ben] = [await tokensFor('1'), await tokensFor('2')];
    const get = (domain: string, { access_token }: { access_token: string }) =>
      fetch(`${service.enterpriseBaseUrl.replace('{domain}', domain)}/api/v2/user`, {
        headers: { authorization: `Bearer ${access_token}` },
      });
    expect(await (await get('acme', ben)).json()).toMatchObject({ data: { organization: 'acme' } });
    expect((await get('globex', ben)).status).toBe(403);
    expect((await get('acme', ada)).status).toBe(403);
    expect((await fetch(`${service.baseUrl}/organizations/acme/oauth/token`)).status).toBe(404);
  });

  test.each([[{ plainHostForOrganizations: false }], [{ profile: 'crowdin' }]] as const)(
    'with %j the plain host refuses the token of a member, as a forgotten enterpriseBaseUrl deserves',
    async (options) => {
      await startService(options);
      const [ada, ben] = [await tokensFor('1'), await tokensFor('2')];
      const refused = await projects(ben.access_token);
      expect(refused.status).toBe(403);
      expect((await body<{ error: { message: string } }>(refused)).error.message).toContain('enterpriseBaseUrl');
      expect((await projects(ada.access_token)).status).toBe(200);
    },
  );
});

describe('lookup', () => {
  test.each(['acme.api.localhost', 'localhost', 'a.LOCALHOST.'])('resolves %s to loopback', async (host) => {
    await startService();
    const { access_token } = await tokensFor('2');
    const { port } = new URL(service.baseUrl);
    const headers = { authorization: `Bearer ${access_token}`, host: `acme.api.localhost:${port}` };
    expect((await rawGet('/api/v2/user', headers, { hostname: host, lookup })).status).toBe(200);
  });

  test.each([
    [{}, '127.0.0.1', 4],
    [{ family: 6 }, '::1', 6],
    [{ all: true }, [{ address: '127.0.0.1', family: 4 }], undefined],
  ])('answers %j as dns.lookup does', async (options, address, family) => {
    await startService();
    const answer = await new Promise((resolve) => lookup('x.localhost', options, (...found) => resolve(found)));
    expect(answer).toEqual(family === undefined ? [null, address] : [null, address, family]);
  });

  test('asks the system about every other host', async () => {
    await startService();
    const error = await new Promise((resolve) => lookup('does-not-exist.invalid', {}, resolve));
    expect(error).toMatchObject({ syscall: 'getaddrinfo' });
  });
});
