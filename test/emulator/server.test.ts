import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as send } from 'node:http';
import { get as secureGet } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type LogEntry, startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, test, vi } from 'vitest';
import { threats } from '../support/threats.js';
import { authorizeUrl, codeFor, exchange, post, projects, service, startService, tokensFor } from './plain-client.js';

/** Sends bytes as they are and returns the status line. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1', () => socket.end(text));
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', reject).on('close', () => resolve(answer.split('\r\n', 1)[0] ?? ''));
  });
}

describe('requests', () => {
  test('every request is recorded with method, path, query, headers and body', async () => {
    await startService();
    const [method, query] = ['POST', { a: '1', b: ['x y', '2'] }];
    const headers = { 'content-type': 'application/json', 'x-test': '7' };
    await post('/oauth/token?a=1&b=x+y&b=2', '{"a":[1]}', '', { headers });
    await post('/nothing%20here', 'plain text', 'text/plain');
    await post('/oauth/token', '{broken', 'application/json');
    expect(service.requests).toMatchObject([
      { method, path: '/oauth/token', query, headers, body: { a: [1] } },
      { method, path: '/nothing%20here', query: {}, body: 'plain text' },
      { method, path: '/oauth/token', body: '{broken' },
    ]);
    await fetch(authorizeUrl());
    const read = { method: 'GET', path: '/oauth/authorize', query: { state: 'some-state' }, body: undefined };
    expect(service.requests[3]).toMatchObject(read);
    service.requests.length = 0;
    await projects('x');
    expect(service.requests).toMatchObject([{ path: '/api/v2/projects' }]);
  });

  test('keepRequests bounds how many are kept: the newest', async () => {
    await startService({ keepRequests: 10 });
    for (let n = 0; n < 25; n += 1) await fetch(`${service.baseUrl}/${n}`);
    expect(service.requests.length).toBeLessThanOrEqual(10);
    expect(service.requests.at(-1)?.path).toBe('/24');
    await service.close();
    await startService({ keepRequests: 0 });
    await fetch(`${service.baseUrl}/nothing`);
    expect(service.requests).toEqual([]);
  });

  test('log tells the outcome of each, and no secret', async () => {
    const entries: LogEntry[] = [];
    await startService({ log: (entry) => entries.push(entry) });
    const code = await codeFor();
    await exchange(code);
    service.fail('api', { reset: true });
    await expect(projects('secret-token')).rejects.toThrow();
    expect(entries.map(({ method, path, outcome }) => `${method} ${path} ${outcome}`)).toEqual([
      'GET /oauth/authorize 200',
      'POST /oauth/authorize 302',
      'POST /oauth/token 200',
      'GET /api/v2/projects reset',
    ]);
    for (const secret of [code, service.options.clientSecret, 'secret-token']) {
      expect(JSON.stringify(entries)).not.toContain(secret);
    }
  });
});

describe('malformed requests get an answer and do no harm', () => {
  test.each([
    ['GET /oauth/authorize?client_id=%E0%A4%A HTTP/1.1\r\nHost: localhost\r\n\r\n', '400'],
    ['GET /oauth/authorize?__proto__=1&constructor=2 HTTP/1.1\r\nHost: localhost\r\n\r\n', '400'],
    ['GET /api/v2/projects?a=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n', '401'],
    ['GET /api/v2/%zz HTTP/1.1\r\nHost: [::::\r\n\r\n', '421'],
    ['GET http://other.example/api/v2/projects HTTP/1.1\r\nHost: localhost\r\n\r\n', '421'],
    ['GET http://localhost/api/v2/projects HTTP/1.1\r\nHost: other.example\r\n\r\n', '401'],
    ['GET http://127.0.0.1?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n', '200'],
    ['OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', '404'],
    ['GET //oauth/authorize HTTP/1.1\r\nHost: localhost\r\n\r\n', '404'],
    ['GET /oauth/../oauth/token HTTP/1.1\r\nHost: localhost\r\n\r\n', '404'],
    ['GET /api/v2/projects HTTP/1.0\r\n\r\n', '401'],
    ['GET /api/v2/projects HTTP/1.1\r\n\r\n', '400'],
    ['PUT /oauth/authorize HTTP/1.1\r\nHost: localhost\r\n\r\n', '405'],
    ['HEAD /oauth/authorize HTTP/1.1\r\nHost: localhost\r\n\r\n', '400'],
    ['nonsense\r\n\r\n', '400'],
    ['POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{', ''],
  ])('%j', async (request, status) => {
    await startService();
    const line = await raw(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    if (status !== '') expect(line).toContain(` ${status} `);
    await tokensFor();
  });

  test('a body over 1 MiB is refused with 413', async () => {
    await startService();
    const headers = { 'content-type': 'application/json' };
    const request = send(`${service.authUrl}/oauth/token`, { method: 'POST', headers });
    request.write(Buffer.alloc(1024 * 1024 + 1, ' '));
    const [response] = await once(request, 'response');
    response.resume();
    expect(response.statusCode).toBe(413);
    expect(service.requests).toMatchObject([{ path: '/oauth/token', body: undefined }]);
    await tokensFor();
  });

  test('the rest of a body that is too large is read, so that its 413 is not lost with the connection', async () => {
    await startService();
    const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
    const refused = once(socket, 'data');
    const half = Buffer.alloc(2 * 1024 * 1024);
    socket.write(`POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 * half.length}\r\n\r\n`);
    socket.write(half);
    const [first] = await refused;
    socket.write(half);
    socket.end('GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    const answers = `${first}${await text(socket)}`;
    expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['413', '404']);
  });

  test('a client that leaves in the middle of its body is forgotten', async () => {
    await startService();
    const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
    socket.write('POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"a"', () =>
      socket.resetAndDestroy(),
    );
    await once(socket, 'close');
    await tokensFor();
    expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(1);
  });
});

describe('only this computer, and never production', threats(54), () => {
  test('it refuses to start under NODE_ENV=production', async () => {
    vi.stubEnv('NODE_ENV', 'production');
    try {
      const refused = { name: 'EmulatorError', code: 'ERR_EMULATOR_PRODUCTION' };
      for (const options of [{}, { allowRemote: true }, { allowRemote: true, host: '0.0.0.0' }])
        await expect(startEmulator(options)).rejects.toMatchObject(refused);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test.each(['0.0.0.0', '::', '192.168.1.5', 'example.com', '', '127.0.0.1.example.com', '[::1]', '128.0.0.1'])(
    'it refuses to start on the address %j',
    async (host) => {
      await expect(startEmulator({ host })).rejects.toMatchObject({ code: 'ERR_EMULATOR_OPTION', option: 'host' });
    },
  );
});

describe('listening', () => {
  test('it answers on IPv4 and, where there is one, on IPv6 loopback, and nowhere else', async () => {
    await startService();
    const { port } = new URL(service.baseUrl);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
    expect((await fetch(`http://localhost:${port}/`)).status).toBe(200);
    const six = await fetch(`http://[::1]:${port}/`).then(
      ({ status }) => status,
      (error: Error) => (error.cause instanceof Error && 'code' in error.cause ? error.cause.code : error),
    );
    expect([200, 'EADDRNOTAVAIL', 'EAFNOSUPPORT']).toContain(six);
  });

  test.each(['localhost', '::1', '127.0.0.1'])('with host %s the addresses have it', async (host) => {
    await startService({ host });
    expect(new URL(service.authUrl).hostname).toBe(host === '::1' ? '[::1]' : host);
    await tokensFor();
  });

  test('a port that is taken is an error that names it', async () => {
    await startService();
    const port = Number(new URL(service.authUrl).port);
    await expect(startEmulator({ port })).rejects.toThrow(`Port ${port} is in use.`);
  });

  test('close() ends idle connections at once, may be called twice, and frees the port', async () => {
    await startService();
    const port = Number(new URL(service.authUrl).port);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const ended = once(socket, 'close');
    await Promise.all([service.close(), service.close()]);
    await ended;
    await startService({ port });
    expect(new URL(service.authUrl).port).toBe(String(port));
  });

  test('with a certificate it speaks HTTPS', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'emulator-'));
    const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const openssl = [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj'],
      ...['/CN=localhost', '-keyout', keyFile, '-out', certFile],
    ];
    execFileSync('openssl', openssl, { stdio: 'ignore' });
    const https = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
    rmSync(folder, { recursive: true });
    await startService({ https, host: 'localhost' });
    expect(service.authUrl).toMatch(/^https:\/\/localhost:\d+$/);
    expect(service.enterpriseBaseUrl).toMatch(/^https:\/\/\{domain\}\.api\.localhost:\d+$/);
    const get = () => once(secureGet(`${service.baseUrl}/api/v2/projects`, { ca: https.cert }), 'response');
    expect(await get()).toMatchObject([{ statusCode: 401 }]);
    expect(await service.approve(authorizeUrl())).toMatch(/callback\?code=/);
    service.fail('api', { reset: true });
    await expect(get()).rejects.toThrow();
  });
});

describe('options', () => {
  const application = { redirectUrls: ['http://localhost:3000/callback'] };

  test.each<[Record<string, unknown>, RegExp]>([
    [{ prot: 1 }, /unknown key "prot"\. Known are: port, host/],
    [{ port: '4000' }, /^port must be a whole number from 0 to 65535, but it is '4000'/],
    [{ port: 70_000 }, /^port must be/],
    [{ accessTokenLifetime: 0 }, /^accessTokenLifetime must be/],
    [{ accessTokenLifetime: 1.5 }, /^accessTokenLifetime must be/],
    [{ codeLifetime: -1 }, /^codeLifetime must be/],
    [
      { refreshTokenReuse: 'never' },
      /^refreshTokenReuse must be one of 'refuse', .*'until-refreshed', but it is 'never'/,
    ],
    [{ codeReuse: 'grace' }, /^codeReuse must be one of/],
    [{ concurrency: 0 }, /^concurrency must be/],
    [{ clock: 5 }, /^clock must be a function/],
    [{ seed: 5 }, /^seed must be a non-empty string/],
    [{ log: 'yes' }, /^log must be a function/],
    [{ scopes: ['project'] }, /^scopes must be an object/],
    [{ applications: [] }, /^applications must be a list with at least one item/],
    [{ applications: [{}] }, /^applications\[0\]\.redirectUrls must be a list/],
    [{ applications: [{ redirectUrls: [] }] }, /redirectUrls must be a list with at least one item/],
    [{ applications: [{ redirectUrls: ['/callback'] }] }, /redirectUrls\[0\] must be an absolute URL/],
    [{ applications: [{ redirectUrls: ['http://localhost/#x'] }] }, /without a fragment/],
    [{ applications: [{ redirectUrls: ['http://localhost/ä'] }] }, /must be an absolute URL in ASCII/],
    [{ applications: [{ redirectUrls: ['http://localhost/\r\nx: y'] }] }, /must be an absolute URL in ASCII/],
    [{ applications: [{ redirectUrls: ['javascript:alert(1)'] }] }, /must be an absolute URL/],
    [{ applications: [{ ...application, clientId: 'x' }] }, /applications\[0\] has the unknown key "clientId"/],
    [{ applications: [{ ...application, clientID: '' }] }, /^applications\[0\]\.clientID must be a non-empty string/],
    [{ users: [] }, /^users must be a list with at least one item/],
    [{ users: [{ name: 'Ada' }] }, /^users\[0\]\.id must be a non-empty string, but it is missing/],
    [{ users: [{ id: '1', name: 'Ada', domain: 'a.b' }] }, /^users\[0\]\.domain must be one DNS label/],
    [{ users: [{ id: '1', name: 'Ada', projects: [7] }] }, /^users\[0\]\.projects\[0\] must be an object/],
    [{ routes: [{ method: 'get', path: '/x', handler: () => 1 }] }, /method must be an HTTP method in capitals/],
    [{ routes: [{ method: 'GET', path: '/api/v2/x', handler: () => 1 }] }, /^routes\[0\]\.path must be a path below/],
    [{ latency: [5, 1] }, /^latency must be a range \[min, max\] of whole milliseconds/],
    [{ latency: '5' }, /^latency must be a whole number/],
    [{ bodyLimit: -1 }, /^bodyLimit must be a whole number/],
    [{ allowRemote: 'yes' }, /^allowRemote must be true or false/],
    [{ domainHosts: 'query' }, /^domainHosts must be one of 'subdomain', 'path'/],
    [{ profile: 'unknown' }, /^profile must be one of 'crowdin', 'form'/],
    [{ profile: { tokenPath: 'token' } }, /^profile\.tokenPath must be a path/],
    [{ profile: { rotation: 'never' } }, /^profile\.rotation must be one of/],
    [{ profile: { authorizationParams: { audience: 7 } } }, /^profile\.authorizationParams\.audience must be/],
    [{ routes: '/nowhere.json' }, /the OpenAPI file \/nowhere\.json cannot be used: ENOENT/],
    [{ routes: [{ method: 'GET', path: '/x' }] }, /^routes\[0\]\.handler must be a function/],
    [{ https: {} }, /^https\.key must be PEM text/],
    [{ https: { key: 'x', cert: 'y' } }, /^https must hold a private key/],
  ])('%j is refused with a message that says what is expected', async (options, message) => {
    await expect(Reflect.apply(startEmulator, undefined, [options])).rejects.toThrow(message);
  });

  test('a wrong secret is not shown in the message', async () => {
    const secret = ['hush-hush'];
    const options = { applications: [{ ...application, clientSecret: secret }] };
    const failure: Error = await Reflect.apply(startEmulator, undefined, [options]).catch((error: Error) => error);
    expect(failure.message).toContain('applications[0].clientSecret must be a non-empty string');
    expect(failure.message).not.toContain('hush');
  });

  test('undefined is as if an option were left out', async () => {
    await startService({ port: undefined, applications: undefined, accessTokenLifetime: undefined, seed: undefined });
    expect(Object.keys(service.options)).toEqual([
      ...['authUrl', 'baseUrl', 'enterpriseBaseUrl', 'clientID', 'clientSecret', 'authorizationPath', 'tokenPath'],
      ...['revocationPath', 'apiPath', 'tokenRequest', 'clientAuthentication', 'scopeSeparator', 'authorizationParams'],
      ...['accessTokenHeader', 'enterpriseHosts'],
    ]);
  });

  test('with scopes, only those are known, and the consent page shows their words', async () => {
    await startService({ scopes: { glossary: 'Read your glossaries' } });
    expect(await (await fetch(authorizeUrl({ scope: 'glossary' }))).text()).toContain('Read your glossaries');
    const response = await fetch(authorizeUrl({ scope: 'glossary project' }), { redirect: 'manual' });
    expect(response.headers.get('location')).toContain('error=invalid_scope');
  });

  test('register() adds redirect URLs to a known application, or another application', async () => {
    await startService();
    const { clientID } = service.options;
    const extended = service.register({ clientID, redirectUrls: ['http://localhost:8080/cb'] });
    expect(extended.redirectUrls).toEqual(['http://localhost:3000/callback', 'http://localhost:8080/cb']);
    expect(extended.clientSecret).toBe(service.options.clientSecret);
    const mine = { clientID: 'mine', clientSecret: 'my-secret', name: 'Mine', ...application };
    expect(service.register(mine)).toEqual(mine);
    expect(service.applications.map((one) => one.clientID)).toEqual([clientID, 'mine']);
    expect(() => service.register({ clientID, clientSecret: 'another', ...application })).toThrow(
      /clientSecret must be left out/,
    );
  });
});
