import { once } from 'node:events';
import { type ClientRequest, createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import express from 'express';
import { ConfigurationError, forward, requireAuthorization, Strategy } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { huge } from '../support/broken-answers.js';
import { Browser } from '../support/browser.js';
import { fastForward } from '../support/fast-forward.js';
import { answer, type FaultyServer, hang, head, json, reset, startFaultyServer } from '../support/faulty-server.js';
import { mayLeave } from '../support/may-leave.js';
import { browser, clock, loggedIn, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import type { App, Framework, Handler, World, WorldOptions } from '../support/world.js';

const ALLOW = ['GET /projects', 'POST /projects', 'GET /projects/*', '* /projects/*/files/**'];
const OTHER = {
  ...{ authUrl: 'http://localhost:1', baseUrl: 'http://localhost:1', clientID: 'id', clientSecret: 'secret' },
  ...{ callbackURL: 'http://localhost/callback', scope: 'tm', name: 'other' },
};
const OWN = { 'sec-fetch-site': 'same-origin' };

interface Forwarded {
  readonly api: FaultyServer;
  readonly cookie: string;
  /** Requests that the API has received. */
  readonly sent: FaultyServer['requests'];
  send(method: string, path: string, headers?: Record<string, string | string[]>, body?: Buffer): ClientRequest;
}

const mount = (app: App, world: World) => {
  app.use('/api', requireAuthorization() as Handler);
  app.use('/api', forward(world.strategy, { allow: ALLOW }) as Handler);
};

/** Logs a user in to an application that forwards to an API of the test. */
async function start({ strategy, ...options }: WorldOptions = {}): Promise<Forwarded> {
  const api = await startFaultyServer();
  onTestFinished(() => api.close());
  await loggedIn({ routes: mount, ...options, strategy: { baseUrl: api.origin, ...strategy } });
  const cookie = browser.cookieHeader(world.url);
  const { hostname, port } = new URL(world.url);
  return {
    api,
    cookie,
    sent: api.requests,
    send: (method, path, headers = {}, body) => {
      const outgoing = request({ hostname, port, method, path, headers: { cookie, ...OWN, ...headers } });
      return body === undefined ? outgoing : outgoing.end(body);
    },
  };
}

async function responseTo(outgoing: ClientRequest): Promise<{ answered: IncomingMessage; body: string }> {
  const [answered] = await once(outgoing, 'response');
  return { answered, body: await text(answered) };
}

/** What has to be refused: method, path, headers. Nothing of it may reach the API. */
const HOSTILE: readonly [title: string, method: string, path: string, headers?: Record<string, string>][] = [
  ['a path that is not named', 'GET', '/api/users'],
  ['a method that is not named', 'DELETE', '/api/projects/7'],
  ['HEAD, which is not named', 'HEAD', '/api/projects'],
  ['the root', 'GET', '/api'],
  ['the root with a slash', 'GET', '/api/'],
  ['a slash at the end', 'GET', '/api/projects/'],
  ['a further segment', 'GET', '/api/projects/7/members'],
  ['another case', 'GET', '/api/Projects'],
  ['a segment in front', 'GET', '/api/v2/projects'],
  ['a dot segment', 'GET', '/api/projects/../users'],
  ['an encoded dot segment', 'GET', '/api/projects/%2e%2e/users'],
  ['a half encoded dot segment', 'GET', '/api/projects/.%2E/users'],
  ['a twice encoded dot segment', 'GET', '/api/projects/7/files/%252e%252e/%252e%252e/users'],
  ['a dot segment below **', 'GET', '/api/projects/7/files/../../../users'],
  ['a dot segment with a parameter', 'GET', '/api/projects/7/files/..;/x'],
  ['a dot segment behind an encoded slash', 'GET', '/api/projects/7/files/..%2f..%2fusers'],
  ['a single dot', 'GET', '/api/projects/.'],
  ['an encoded slash that adds a segment', 'GET', '/api/projects/7%2Fmembers'],
  ['a twice encoded slash', 'GET', '/api/projects/7%252Fmembers'],
  ['an encoded slash in front', 'GET', '/api/%2Fprojects'],
  ['a parameter in place of a segment', 'GET', '/api/projects/;x=1'],
  ['a parameter that hides the rest', 'GET', '/api/projects/7;/members'],
  ['a backslash', 'GET', '/api/projects/7\\..\\users'],
  ['an encoded backslash', 'GET', '/api/projects/7/files/..%5cusers'],
  ['an encoded null', 'GET', '/api/projects/%00'],
  ['an encoded line break', 'GET', '/api/projects/7%0d%0aHost:%20evil.example'],
  ['a broken escape', 'GET', '/api/projects/%zz'],
  ['an overlong encoding', 'GET', '/api/projects/%c0%ae%c0%ae/users'],
  ['many encodings', 'GET', `/api/projects/%${'25'.repeat(12)}2e`],
  ['another host', 'GET', '/api//evil.example/projects'],
  ['another host behind a backslash', 'GET', '/api/\\evil.example/projects'],
  ['a URL as the path', 'GET', '/api/http://evil.example/projects'],
  ['a URL in the request line', 'GET', 'http://evil.example/api/users'],
  ['TRACE, which echoes the token', 'TRACE', '/api/projects/7/files/1'],
  ['an odd method', 'M-SEARCH', '/api/projects/7/files/1'],
  ['another method by a header', 'POST', '/api/projects/7', { ...OWN, 'x-http-method-override': 'GET' }],
  ['a POST of another site', 'POST', '/api/projects', { 'sec-fetch-site': 'cross-site' }],
  ['a POST of a sibling', 'POST', '/api/projects', { 'sec-fetch-site': 'same-site' }],
  ['a POST of the address bar', 'POST', '/api/projects', { 'sec-fetch-site': 'none' }],
  ['a POST with no word of its origin', 'POST', '/api/projects', {}],
  ['an empty X-Requested-With', 'POST', '/api/projects', { 'x-requested-with': '' }],
  [
    'X-Requested-With of another site',
    'POST',
    '/api/projects',
    { 'sec-fetch-site': 'cross-site', 'x-requested-with': 'fetch' },
  ],
  ['a foreign Origin', 'POST', '/api/projects', { origin: 'https://evil.example', 'x-requested-with': 'fetch' }],
  ['an opaque Origin', 'PUT', '/api/projects/7/files/1', { origin: 'null', 'x-requested-with': 'fetch' }],
  ...['script', 'style', 'document', 'iframe', 'worker', 'manifest', 'xslt', 'Image', 'image, script'].map(
    (destination): (typeof HOSTILE)[number] => [
      `what a page loads as ${destination}`,
      'GET',
      '/api/projects',
      { ...OWN, 'sec-fetch-dest': destination },
    ],
  ),
  ['two words on its origin', 'POST', '/api/projects', { 'sec-fetch-site': 'same-origin, cross-site' }],
  ['a forged token and no login', 'GET', '/api/projects', { cookie: '', authorization: 'Bearer forged' }],
];

describe.each<Framework>(['express', 'connect'])('forward(strategy, { allow }) under %s', (framework) => {
  test('sends nothing for any of the hostile requests', threats(85, 128), async () => {
    const { cookie, sent } = await start({ framework });
    const answers: Record<string, number> = {};
    for (const [title, method, path, headers = {}] of HOSTILE) {
      const { status, text: body } = await rawRequest(world.url, path, { method, headers: { cookie, ...headers } });
      answers[title] = status;
      expect(body).not.toMatch(/eyJ|Bearer|evil/);
    }
    const expected = HOSTILE.map(([title, method, , headers]) => {
      if (title.startsWith('a forged token')) return [title, 401];
      if (title.startsWith('what a page loads')) return [title, 403];
      return [title, method === 'GET' || headers === undefined || title.startsWith('another method') ? 404 : 403];
    });
    expect(answers).toEqual(Object.fromEntries(expected));
    expect(sent).toEqual([]);
  });

  test(
    'passes path, query and the headers of the representation on, and the token of the user',
    threats(85),
    async () => {
      const { api, send, sent } = await start({ framework });
      const outgoing = send('GET', '/api/projects/7?limit=2&q=a%20b', {
        accept: 'application/json',
        'accept-language': 'de',
        'accept-encoding': 'gzip',
        'if-none-match': '"7"',
        range: 'bytes=0-9',
        authorization: 'Bearer forged',
        connection: 'authorization, x-hop, keep-alive',
        'x-hop': '1',
        te: 'trailers',
        forwarded: 'for=10.0.0.1',
        'x-forwarded-for': '10.0.0.1',
        'x-forwarded-host': 'evil.example',
        'proxy-authorization': 'Basic eA==',
        'x-crowdin-anything': '1',
        'user-agent': 'Browser',
        referer: 'https://app.example/secret',
      });
      outgoing.end();
      expect((await responseTo(outgoing)).answered.statusCode).toBe(200);
      expect(sent.map(({ target }) => target)).toEqual(['/api/v2/projects/7?limit=2&q=a%20b']);
      const { authorization, host, connection, ...others } = sent[0]?.headers ?? {};
      expect(authorization).toMatch(/^Bearer eyJ/);
      expect([host, connection]).toEqual([new URL(api.origin).host, 'keep-alive']);
      expect(others).toEqual({
        accept: 'application/json',
        'accept-language': 'de',
        'accept-encoding': 'identity',
        'if-none-match': '"7"',
        range: 'bytes=0-9',
        'user-agent': 'passport-oauth-app',
      });
    },
  );

  test('brings status, body and the headers of the representation back, and nothing else', threats(85), async () => {
    const { api, send } = await start({ framework });
    const representation = {
      'content-type': 'text/html; charset=utf-8',
      'content-language': 'de',
      'content-disposition': 'inline',
      etag: '"7"',
      'last-modified': 'Sun, 01 Nov 2026 00:00:00 GMT',
      'accept-ranges': 'bytes',
      link: '</projects?page=2>; rel="next"',
      'retry-after': '7',
    };
    api.next(
      answer(
        418,
        {
          ...representation,
          'set-cookie': 'api=1',
          'www-authenticate': 'Bearer error="invalid_token"',
          location: 'https://evil.example',
          'access-control-allow-origin': '*',
          'cache-control': 'public, max-age=60, s-maxage=600',
          'x-internal': 'host-7',
          server: 'api',
        },
        '<script>alert(1)</script>',
      ),
    );
    const outgoing = send('GET', '/api/projects');
    outgoing.end();
    const { answered, body } = await responseTo(outgoing);
    expect([answered.statusCode, body]).toEqual([418, '<script>alert(1)</script>']);
    const { date: _, connection: _c, 'keep-alive': _k, 'x-powered-by': _x, ...headers } = answered.headers;
    expect(headers).toEqual({
      ...representation,
      'content-length': '25',
      'cache-control': 'private, max-age=60',
      vary: 'Cookie',
      // A document of the API does not run in the origin of the application.
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  test('sends bodies on with their type and length, from pages of this origin', async () => {
    const { send, sent } = await start({ framework });
    const large = Buffer.alloc(300_000, 'x');
    const json = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'sec-fetch-dest': 'empty' };
    const old = { 'sec-fetch-site': [], 'x-requested-with': 'fetch' };
    await responseTo(send('POST', '/api/projects', json, Buffer.from('{"name":"Site"}')));
    await responseTo(send('PUT', '/api/projects/7/files/1/2', { 'content-length': '300000' }, large));
    const chunked = send('PATCH', '/api/projects/7/files', { ...json, 'transfer-encoding': 'chunked' });
    chunked.write('piece ');
    await responseTo(chunked.end('by piece'));
    await responseTo(send('DELETE', '/api/projects/7/files/1', old).end());
    await responseTo(send('POST', '/api/projects', { ...old, origin: world.url }, Buffer.from('x')));
    expect(sent.map(({ method, headers, body }) => [method, headers['content-type'], body.length])).toEqual([
      ['POST', 'application/json', 15],
      ['PUT', undefined, 300_000],
      ['PATCH', 'application/json', 14],
      ['DELETE', undefined, 0],
      ['POST', undefined, 1],
    ]);
    expect(sent[1]?.headers['content-length']).toBe('300000');
    expect(sent.map(({ headers }) => headers['content-encoding'])).toEqual([
      'gzip',
      undefined,
      'gzip',
      undefined,
      undefined,
    ]);
  });

  test(
    'ends the call at the API when the browser goes away, while it waits and while it reads',
    threats(85),
    async () => {
      const { api, send } = await start({ framework });
      api.next(hang());
      const waiting = send('GET', '/api/projects').on('error', () => {});
      waiting.end();
      await api.received(1);
      waiting.destroy();
      await until(() => expect(api.open).toBe(0));
      api.next(huge(1e12));
      const reading = send('GET', '/api/projects').on('error', () => {});
      const [answered] = await once(reading.end(), 'response');
      await once(answered, 'data');
      reading.destroy();
      await until(() => expect(api.open).toBe(0));
      // Nobody is there to be answered.
      expect(world.errors).toEqual([]);
    },
  );

  test('ends an upload that stops, and its call', threats(85), async () => {
    const begun: unknown[] = [];
    const before = (app: App) => app.use('/api', (req, _res, next) => next(void begun.push(req)));
    const { api, send } = await start({ framework, before });
    const uploads = async () => {
      const short = send('POST', '/api/projects', { 'content-length': '10' });
      short.write('half');
      const long = send('PUT', '/api/projects/7/files/1', { 'content-length': '100000' });
      const ends = [short, long].map((each) =>
        once(
          each.on('error', () => {}),
          'close',
        ),
      );
      long.write('begun');
      const answers = await Promise.all([responseTo(short), responseTo(long)]);
      expect(answers.map(({ answered }) => answered.statusCode)).toEqual([408, 408]);
      await Promise.all(ends);
    };
    await fastForward(uploads, () => begun.length === 2);
    expect(world.errors.map(({ code }) => code).sort()).toEqual(['ERR_REQUEST_TIMEOUT', 'ERR_REQUEST_TIMEOUT']);
    await until(() => expect(api.open).toBe(0));
    expect(api.requests).toEqual([]);
  });

  test('takes the rest of an upload that the API has answered early', async () => {
    // The upload is not at its end yet.
    mayLeave(/deadlines|limit\.signal/);
    const api = createServer({ keepAliveTimeout: 0 }, (req, res) => {
      res.writeHead(413).end();
      req.resume();
    });
    await once(api.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void api.close());
    const baseUrl = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    const { cookie } = await start({ framework, strategy: { baseUrl, timeout: 120_000 } });
    const { host, port } = new URL(world.url);
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const answered = once(socket, 'data');
    const headers = { host, cookie, ...OWN, 'content-length': 32 * 1024 * 1024 };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`PUT /api/projects/7/files/1 HTTP/1.1\r\n${lines.join('')}\r\n`);
    // More than the buffers of the connection take.
    const pieces = Array.from({ length: 512 }, () => Buffer.alloc(64 * 1024));
    await pipeline(Readable.from(pieces), socket, { end: false });
    expect(String(await answered)).toMatch(/^HTTP\/1.1 413 /);
  });

  test('passes a failure to the error handler, headers at once, and breaks off a body with the API', async () => {
    const { api, send } = await start({ framework });
    api.next(reset());
    const { answered } = await responseTo(send('PUT', '/api/projects/7/files/1', {}, Buffer.alloc(100_000)));
    expect([answered.statusCode, world.errors.map(({ code }) => code)]).toEqual([503, ['ERR_SERVICE_UNAVAILABLE']]);
    let socket: Socket | undefined;
    api.next((begun) => {
      socket = begun;
      begun.write(head(200, { 'content-length': '1000' }));
    });
    const [begun] = await once(send('GET', '/api/projects').end(), 'response');
    const whole = text(begun);
    socket?.write('begun', () => socket?.destroy());
    await expect(whole).rejects.toThrow('aborted');
  });
});

describe('forward(strategy, { allow })', () => {
  test('sends a short body again with a newer token, and passes a refusal on', async () => {
    const { api, send, sent } = await start();
    api.next(json({}, 401));
    const first = await responseTo(send('POST', '/api/projects', {}, Buffer.from('{}')));
    api.next(answer(401, { 'www-authenticate': 'Bearer' }), 2);
    const second = await responseTo(send('POST', '/api/projects', {}, Buffer.from('{}')));
    expect([first.answered.statusCode, second.answered.statusCode]).toEqual([200, 401]);
    expect(second.answered.headers['www-authenticate']).toBeUndefined();
    expect(sent.map(({ body }) => String(body))).toEqual(['{}', '{}', '{}', '{}']);
    expect(world.tokenRequests()).toHaveLength(2);
  });

  test('asks for a long body again once the token is renewed, and passes the refusal of a renewed one on', async () => {
    const { api, send } = await start();
    const upload = () => responseTo(send('PUT', '/api/projects/7/files/1', {}, Buffer.alloc(300_000)));
    const statuses: unknown[] = [];
    for (const refused of [1, 0, 2, 0]) {
      api.next(answer(401, {}), refused);
      statuses.push((await upload()).answered.statusCode);
    }
    expect(statuses).toEqual([503, 200, 503, 401]);
    expect(world.errors[0]).toMatchObject({ code: 'ERR_TOKEN_RENEWED', retryAfter: 0, sent: true });
    expect(world.tokenRequests()).toHaveLength(2);
  });

  test('follows no redirect, whose target the list may not name', threats(85), async () => {
    const { api, send, sent } = await start();
    for (const location of ['/api/v2/users', 'https://evil.example/']) {
      api.next(answer(302, { location }));
      const { answered } = await responseTo(send('GET', '/api/projects').end());
      expect([answered.statusCode, answered.headers.location]).toEqual([302, undefined]);
    }
    expect(sent).toHaveLength(2);
  });

  test.for([
    [undefined, 'private, no-cache'],
    ['no-store', 'private, no-store'],
    ['public', 'private'],
    ['private="set-cookie", max-age=5', 'private, max-age=5'],
    ['PUBLIC, S-MaxAge=9, must-revalidate, proxy-revalidate', 'private, must-revalidate'],
  ])('turns Cache-Control %s into %s', async ([given, expected]) => {
    const { api, send } = await start();
    api.next(answer(200, given === undefined ? {} : { 'cache-control': given }));
    const { answered } = await responseTo(send('GET', '/api/projects').end());
    expect(answered.headers['cache-control']).toBe(expected);
  });

  test('does not decode what the API has compressed unasked', async () => {
    const { api, send } = await start();
    const zipped = gzipSync('{"data":[]}');
    api.next(answer(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }, zipped));
    const [answered] = await once(send('GET', '/api/projects').end(), 'response');
    const { 'content-encoding': encoding, 'content-length': length } = answered.headers;
    expect([encoding, length, await buffer(answered)]).toEqual(['gzip', String(zipped.length), zipped]);
  });

  test(
    'leaves connections to others when 16 browsers of a user each hold 16 downloads and uploads open',
    threats(101),
    async () => {
      const service = await startEmulator();
      const api = await startFaultyServer();
      onTestFinished(() => service.close());
      onTestFinished(() => api.close());
      // All but files comes from the service: its API and its token endpoint have one origin.
      api.always((socket, request) => {
        if (request.target.includes('/files/')) return huge(1e12)(socket, request);
        const { authorization = '' } = request.headers;
        const headers = { authorization, 'content-type': 'application/json' };
        const body = request.method === 'POST' ? { body: String(request.body) } : {};
        fetch(service.authUrl + request.target, { method: request.method, headers, ...body }).then(async (answered) =>
          json(await answered.json(), answered.status)(socket, request),
        );
      });
      const strategy = { baseUrl: api.origin, tokenPath: `${api.origin}/oauth/token`, timeout: 2_000 };
      await loggedIn({ running: service, routes: mount, strategy });
      const logIn = async () => {
        const browser = new Browser();
        await world.logIn(browser);
        return browser;
      };
      const [attackers, others] = [[], []] as Browser[][];
      for (let count = 0; count < 16; count++) attackers?.push(await logIn());
      for (let count = 0; count < 5; count++) others?.push(await logIn());
      service.requests.length = 0;
      const { hostname, port } = new URL(world.url);
      const begin = (browser: Browser, method: string) => {
        const headers = { ...OWN, cookie: browser.cookieHeader(world.url), 'content-length': '1000000' };
        const path = '/api/projects/7/files/1';
        const outgoing = request({ hostname, port, method, path, headers }).on('error', () => {});
        onTestFinished(() => void outgoing.destroy());
        outgoing.flushHeaders();
        // An upload goes on, byte by byte.
        const timer = setInterval(() => method === 'PUT' && outgoing.write('x'), 10);
        outgoing.once('close', () => clearInterval(timer));
        // What is under way at the end of the test gets no response.
        return once(outgoing, 'response').then(
          ([answered]) => answered.statusCode,
          () => undefined,
        );
      };
      let isDue = false;
      const attacked = async () => {
        const times = (count: number, ...call: Parameters<typeof begin>) =>
          Array.from({ length: count }, () => begin(...call));
        const [first, second, ...more] = attackers as [Browser, Browser];
        const statuses = await Promise.all(times(17, first, 'GET'));
        expect(statuses.sort()).toEqual([...Array(16).fill(200), 429]);
        expect(await Promise.race(times(17, second, 'PUT'))).toBe(429);
        for (const browser of more) times(16, browser, 'PUT');
        while (api.open < 256) await new Promise(setImmediate);
        clock.advance(7_190);
        vi.advanceTimersByTime(1_000);
        const calls = others?.flatMap((browser) =>
          Array.from({ length: 4 }, () => browser.visit(`${world.url}/projects`)),
        );
        // Logins, and the refreshes that the calls need, take no time.
        const latest = await Promise.all(Array.from({ length: 5 }, logIn));
        while (world.tokenRequests().length < 10) await new Promise(setImmediate);
        isDue = true;
        const pages = await Promise.all(calls ?? []);
        expect(pages.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
        const ready = await Promise.all(latest.map((browser) => browser.visit(`${world.url}/projects`)));
        expect(ready.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      };
      // Time passes until the first connection is free.
      const isFree = () => api.requests.some(({ target }) => target === '/api/v2/projects');
      await fastForward(attacked, () => isDue && !isFree());
      const granted = world.tokenRequests().map(({ body }) => Reflect.get(Object(body), 'grant_type'));
      const countOf = (type: string) => granted.filter((each) => each === type).length;
      expect([countOf('authorization_code'), countOf('refresh_token') >= 5]).toEqual([5, true]);
    },
  );

  test('has no body for HEAD, 204 and 304, and keeps the length of HEAD', async () => {
    const { api, send } = await start();
    api.next((socket) => socket.write(head(200, { 'content-length': '77' })));
    const { answered } = await responseTo(send('HEAD', '/api/projects/7/files/1').end());
    expect([answered.statusCode, answered.headers['content-length']]).toEqual([200, '77']);
    for (const status of [204, 304]) {
      api.next((socket) => socket.write(head(status, { etag: '"7"' })));
      const { answered: empty, body } = await responseTo(send('GET', '/api/projects').end());
      expect([empty.statusCode, empty.headers.etag, body]).toEqual([status, '"7"', '']);
    }
  });

  test('reports that it stands in the wrong place', async () => {
    const routes: WorldOptions['routes'] = (app, world) => {
      const handler = forward(world.strategy, { allow: ['* /**'] }) as Handler;
      app.use('/parsed', express.json() as Handler, handler);
      app.use('/early', (req, res, next) => handler(Object.assign(req, { apiClient: undefined }), res, next));
      const other = new Strategy(OTHER);
      onTestFinished(() => other.close());
      app.use('/other', forward(other, { allow: ['* /**'] }) as Handler);
    };
    const { send, sent } = await start({ routes });
    for (const [path, code] of [
      ['/parsed', 'ERR_MIDDLEWARE_ORDER'],
      ['/early', 'ERR_NO_API_CLIENT'],
      ['/other', 'ERR_NO_API_CLIENT'],
    ]) {
      const type = { 'content-type': 'application/json' };
      const { answered, body } = await responseTo(send('POST', `${path}/projects`, type, Buffer.from('{}')));
      expect([answered.statusCode, JSON.parse(body).code]).toEqual([500, code]);
    }
    expect(sent).toEqual([]);
  });

  test.for([
    [undefined],
    [[]],
    ['GET /projects'],
    [['/projects']],
    [['get /projects']],
    [['GET projects']],
    [['GET  /projects']],
    [['GET /projects/']],
    [['GET //projects']],
    [['GET /projects/../users']],
    [['GET /projects?x=1']],
    [['GET /**/files']],
    [['GET /file-*']],
    [['GET https://evil.example/projects']],
    [[7]],
  ])('refuses allow: %j', ([allow]) => {
    const strategy = new Strategy(OTHER);
    onTestFinished(() => strategy.close());
    const create = () => forward(strategy, { allow } as never);
    expect(create).toThrow(ConfigurationError);
    expect(create).toThrow(/^allow: expected/);
  });
});
