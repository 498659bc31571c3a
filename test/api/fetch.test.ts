import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import type { ApiClient } from '../../src/api/api-client.js';
import { NotAuthorizedError } from '../../src/errors.js';
import * as broken from '../support/broken-answers.js';
import { fastForward } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import { threats } from '../support/threats.js';
import {
  client,
  createFixture,
  credentialOf,
  http,
  MemorySource,
  server,
  source,
  startApiForEachTest,
  startServer,
  tokenOf,
} from './fixture.js';

startApiForEachTest();

/** A grant of which nothing is known before the first call, as in a job. */
class UnknownSource extends MemorySource {
  override get last(): undefined {
    return undefined;
  }
}

const targets = () => server.requests.map(({ method, target }) => `${method} ${target}`);

describe('fetch returns a Response', () => {
  test.each<[string, faulty.Behaviour]>([
    [
      'at once',
      faulty.raw(`${faulty.head(200, { 'content-type': 'application/json', 'content-length': '7' })}{"a":1}`),
    ],
    ['in parts', faulty.json({ a: 1 })],
    [
      'compressed',
      faulty.answer(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }, gzipSync('{"a":1}')),
    ],
  ])('of a body that arrives %s, to be read in each way', async (_how, behaviour) => {
    server.always(behaviour);
    const get = () => client.fetch('/projects');
    const response = await get();
    expect(response).toBeInstanceOf(Response);
    expect([response.ok, response.status, response.statusText]).toEqual([true, 200, 'OK']);
    expect(response.url).toBe(`${server.origin}/api/v2/projects`);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ a: 1 });
    expect(await (await get()).text()).toBe('{"a":1}');
    expect(Buffer.from(await (await get()).arrayBuffer()).toString()).toBe('{"a":1}');
    expect(await (await (await get()).blob()).text()).toBe('{"a":1}');
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await get()).body ?? []) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('{"a":1}');
  });

  test('of a server that sends deflate without the header of zlib to whoever takes deflate', async () => {
    server.always((socket, request) => {
      const isAsked = request.headers['accept-encoding']?.includes('deflate');
      const deflated = faulty.answer(200, { 'content-encoding': 'deflate' }, deflateRawSync('text'));
      (isAsked ? deflated : faulty.answer(200, {}, 'text'))(socket, request);
    });
    expect(await (await client.fetch('/projects')).text()).toBe('text');
  });

  test.each<[string, faulty.Behaviour]>([
    ['at once', faulty.raw(`${faulty.head(200, { 'content-length': '4' })}text`)],
    ['in parts', faulty.answer(200, {}, 'text')],
  ])('whose body, arrived %s, is read once, and from each clone', async (_how, behaviour) => {
    server.always(behaviour);
    const response = await client.fetch('/projects');
    const clone = response.clone();
    expect(response.bodyUsed).toBe(false);
    expect(response.body).toBeInstanceOf(ReadableStream);
    for (const copy of [clone, clone.clone(), response.clone()])
      expect([copy.url, copy.redirected, copy.statusText]).toEqual([`${server.origin}/api/v2/projects`, false, 'OK']);
    expect([await response.text(), await clone.text()]).toEqual(['text', 'text']);
    expect(response.bodyUsed).toBe(true);
    await expect(response.text()).rejects.toBeInstanceOf(TypeError);
    await expect(response.json()).rejects.toBeInstanceOf(TypeError);
    expect(() => response.clone()).toThrow(TypeError);
  });

  test('whose body was taken as a stream is used then', async () => {
    server.next(faulty.raw(`${faulty.head(200, { 'content-length': '4' })}text`));
    const response = await client.fetch('/projects');
    await response.body?.getReader().read();
    expect(response.bodyUsed).toBe(true);
    await expect(response.text()).rejects.toBeInstanceOf(TypeError);
  });

  test('with a form', async () => {
    const body = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n';
    const type = 'multipart/form-data; boundary=b';
    server.next(
      faulty.raw(`${faulty.head(200, { 'content-type': type, 'content-length': String(body.length) })}${body}`),
    );
    expect((await (await client.fetch('/form')).formData()).get('a')).toBe('1');
  });

  test.each([204, 304])('without a body for status %i and for HEAD', async (status) => {
    server.next(faulty.raw(faulty.head(status, {})));
    expect((await client.fetch('/projects')).body).toBeNull();
    server.next(faulty.raw(faulty.head(200, { 'content-length': '100' })));
    expect((await client.fetch('/projects', { method: 'HEAD' })).body).toBeNull();
    await expect.poll(() => http.pending).toBe(0);
  });

  test.each([400, 403, 404, 500])('for status %i, and does not reject', async (status) => {
    server.next(faulty.json({ no: 1 }, status));
    const response = await client.fetch('/projects');
    expect([response.ok, response.status, await response.json()]).toEqual([false, status, { no: 1 }]);
  });

  test('of the last try where the service stays unavailable', async () => {
    server.always(faulty.json({}, 503));
    expect((await client.fetch('/projects')).status).toBe(503);
    expect(server.requests).toHaveLength(3);
    await expect.poll(() => http.pending).toBe(0);
  });

  test('with every value of a header that occurs twice', async () => {
    server.next(faulty.raw('HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 0\r\n\r\n'));
    expect((await client.fetch('/projects')).headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  });

  test('that is received as fast as it is read', async () => {
    const counted = { bytes: 0 };
    server.next(broken.huge(100e6, counted));
    const response = await client.fetch('/export');
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(counted.bytes).toBeLessThan(20e6);
    await expect.poll(() => server.open).toBe(0);
  });

  test('that is cancelled before and between its parts, which ends the request and nothing else', async () => {
    server.always(broken.huge(1e6));
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown) => void uncaught.push(error);
    process.on('uncaughtException', onUncaught);
    for (const reads of [0, 1, 2]) {
      const response = await client.fetch('/export');
      const reader = response.body?.getReader();
      for (let read = 0; read < reads; read++) await reader?.read();
      await reader?.cancel();
      await reader?.closed;
    }
    await expect.poll(() => server.open).toBe(0);
    process.off('uncaughtException', onUncaught);
    expect(uncaught).toEqual([]);
    expect(http.pending).toBe(0);
  });

  test('whose body breaks before it is read: the reader has the error, as if it had read all along', async () => {
    let breakOff = () => {};
    server.next((socket) => {
      socket.write(`${faulty.head(200, { 'content-length': '200000' })}${'x'.repeat(100_000)}`);
      breakOff = () => socket.resetAndDestroy();
    });
    const response = await client.fetch('/export');
    breakOff();
    await expect.poll(() => http.pending).toBe(0);
    await expect(response.text()).rejects.toMatchObject({ name: 'ServiceUnavailableError', sent: true });
  });
});

describe('fetch sends', () => {
  test('a relative path below baseUrl, with or without the API path, and a URL of the API as it is', async () => {
    const { fetch, baseUrl } = client;
    await fetch('/projects?limit=5&q=a%20b#part');
    await fetch('projects/7');
    await fetch('/api/v2/projects');
    await fetch(`${baseUrl}/labels`);
    await fetch(new URL('/api/graphql', baseUrl), { method: 'POST', body: '{}' });
    await fetch(new Request(`${server.origin}/other`));
    expect(targets()).toEqual([
      'GET /api/v2/projects?limit=5&q=a%20b',
      'GET /api/v2/projects/7',
      'GET /api/v2/projects',
      'GET /api/v2/labels',
      'POST /api/graphql',
      'GET /other',
    ]);
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${tokenOf('first')}`]),
    );
  });

  test.each<[string, string | ArrayBuffer | Uint8Array | Blob | URLSearchParams, string | undefined, string]>([
    ['text', 'text', 'text/plain;charset=UTF-8', 'text'],
    ['bytes', new Uint8Array([97, 98]), undefined, 'ab'],
    ['an ArrayBuffer', new Uint8Array([97, 98]).buffer, undefined, 'ab'],
    ['a Blob', new Blob(['ab'], { type: 'text/x-own' }), 'text/x-own', 'ab'],
    ['parameters', new URLSearchParams({ a: '1 2' }), 'application/x-www-form-urlencoded;charset=UTF-8', 'a=1+2'],
  ])('%s, also again after a 401, and in a Request', async (_what, body, type, text) => {
    for (const input of [
      ['/projects', { method: 'POST', body }],
      [new Request(`${server.origin}/api/v2/projects`, { method: 'POST', body }), undefined],
    ] as const) {
      server.next(faulty.json({}, 401));
      expect((await client.fetch(input[0], input[1])).status).toBe(200);
    }
    expect(server.requests.map(({ body: received }) => received.toString())).toEqual(Array(4).fill(text));
    expect(server.requests[0]?.headers['content-type']).toBe(type);
    expect(server.requests[1]?.headers.authorization).toBe(`Bearer ${tokenOf('refresh-1')}`);
  });

  test('the body of a Request that is too large to be held as a stream, once', async () => {
    const input = () => new Request(`${server.origin}/upload`, { method: 'PUT', body: new Uint8Array(3e6).fill(97) });
    expect((await client.fetch(input())).status).toBe(200);
    expect(server.requests[0]?.body).toHaveLength(3e6);
    server.next(faulty.json({}, 503));
    expect((await client.fetch(input())).status).toBe(503);
  });

  test('headers of the caller, without those of the connection', async () => {
    const headers = { 'Content-Type': 'text/csv', Connection: 'close', 'Content-Length': '99', 'X-Own': '1' };
    await client.fetch('/projects', { method: 'POST', body: 'a', headers });
    const sent = { 'content-type': 'text/csv', 'x-own': '1', 'content-length': '1' };
    expect(server.requests[0]?.headers).toMatchObject(sent);
  });

  test('the body of a Request as it comes, if it is not at hand, within the limits of the call', async () => {
    const server = createServer({ keepAliveTimeout: 0 }, (_req, res) => void res.writeHead(200).flushHeaders()).listen(
      0,
      '127.0.0.1',
    );
    await once(server, 'listening');
    const { client } = createFixture(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const init = { method: 'POST', body: readable, duplex: 'half' as const };
    const received = once(server, 'request');
    const pending = client.fetch(new Request(`${client.baseUrl}/upload`, init));
    await writer.write(Buffer.from('one'));
    const [req] = await received;
    expect(String((await once(req, 'data'))[0])).toBe('one');
    await writer.write(Buffer.from('two'));
    expect(String((await once(req, 'data'))[0])).toBe('two');
    await writer.close();
    await once(req, 'end');
    await (await pending).body?.cancel();
    server.closeAllConnections();
    server.close();
  });

  test.each<[string, (client: ApiClient, request: Request) => Promise<Response>, object]>([
    ['signal', (client, request) => client.fetch(request), { name: 'AbortError' }],
    ['timeout', (client, request) => client.fetch(request, { timeout: 9_000 }), { code: 'ERR_SERVICE_TIMEOUT' }],
  ])('nothing more of a Request whose body stands still once its %s says so', async (limit, send, expected) => {
    const controller = new AbortController();
    const cancel = vi.fn();
    const body = new ReadableStream({ pull: () => new Promise(() => {}), cancel });
    const { signal } = controller;
    const init = { method: 'POST', body, signal, duplex: 'half' as const };
    const pending = fastForward(
      () => send(client, new Request(`${client.baseUrl}/upload`, init)),
      () => limit === 'timeout',
    );
    const failed = expect(pending).rejects.toMatchObject(expected);
    if (limit === 'signal') controller.abort();
    await failed;
    await expect.poll(() => cancel).toHaveBeenCalled();
    expect(http.pending).toBe(0);
  });

  test('a URL below a `baseUrl` that it has told to the address of the organization, and no other of the plain API', async () => {
    const source = new UnknownSource(credentialOf('ben', 'acme'));
    const enterpriseBaseUrl = `http://{domain}.api.localhost:${server.port}`;
    const { client } = createFixture(server.origin, { source, enterpriseBaseUrl });
    await expect(client.fetch(`${server.origin}/api/v2/projects`)).rejects.toThrow(/not on the origin of the API/);
    const { baseUrl } = client;
    expect(baseUrl).toBe(`${server.origin}/api/v2`);
    for (const address of [`${baseUrl}/projects?limit=1`, new Request(`${baseUrl}/projects?limit=1`)]) {
      const { url } = await client.fetch(address);
      expect(url).toBe(`http://acme.api.localhost:${server.port}/api/v2/projects?limit=1`);
    }
    await expect(client.fetch(`${server.origin}/graphql`)).rejects.toThrow(/not on the origin of the API/);
    expect(new Set(server.requests.map(({ headers }) => headers.host))).toEqual(
      new Set([`acme.api.localhost:${server.port}`]),
    );
  });

  test('a POST again after a 429, and never after another failure', async () => {
    server.next(faulty.json({}, 429));
    expect((await client.fetch('/projects', { method: 'POST', body: '{}' })).status).toBe(200);
    server.next(faulty.json({}, 503));
    expect((await client.fetch('/projects', { method: 'POST', body: '{}' })).status).toBe(503);
    expect(server.requests).toHaveLength(3);
  });
});

describe('the token leaves the origin of the API by no', threats(67), () => {
  const others = () => [
    'https://evil.example/api/v2/projects',
    `http://127.0.0.1:${server.port + 1}/api/v2/projects`,
    server.origin.replace('http:', 'https:'),
    `http://user:password@127.0.0.1:${server.port}/api/v2/projects`,
    'http://evil.example',
    ...['HTTPS://EVIL.EXAMPLE/', 'data:,x', 'file:///etc/passwd', '//evil.example/x', '\\\\evil.example'],
    ...['\thttps://evil.example', '/../x', '/%2e%2e/x'],
  ];

  test('URL of another origin, in text, as an object or in a Request: a TypeError, and nothing is sent', async () => {
    for (const address of others()) {
      await expect(client.fetch(address), address).rejects.toBeInstanceOf(TypeError);
      if (!/^https?:/i.test(address)) continue;
      await expect(client.fetch(new URL(address)), address).rejects.toBeInstanceOf(TypeError);
      if (address.includes('@')) continue;
      await expect(client.fetch(new Request(address)), address).rejects.toBeInstanceOf(TypeError);
    }
    expect(server.requests).toEqual([]);
  });

  test.each(['Authorization', 'host'])('header %s of the caller', async (name) => {
    await expect(client.fetch('/projects', { headers: { [name]: 'evil.example' } })).rejects.toThrow(
      /set by the client/,
    );
    expect(server.requests).toEqual([]);
  });

  test('URL of the plain API for a user of an organization', async () => {
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const enterpriseBaseUrl = `http://{domain}.api.localhost:${server.port}`;
    const { client } = createFixture(server.origin, { source, enterpriseBaseUrl });
    await expect(client.fetch(`${server.origin}/api/v2/projects`)).rejects.toThrow(/acme\.api\.localhost/);
    expect((await client.fetch('/projects')).url).toBe(`http://acme.api.localhost:${server.port}/api/v2/projects`);
  });

  test('redirect: it is followed on the same origin alone', async () => {
    const there = await startServer();
    server.next(faulty.answer(302, { location: '/elsewhere' }));
    const followed = await client.fetch('/projects');
    expect([followed.status, followed.url, followed.redirected]).toEqual([200, `${server.origin}/elsewhere`, true]);
    server.next(faulty.answer(302, { location: '/elsewhere' }));
    expect((await client.fetch('/projects', { method: 'HEAD' })).redirected).toBe(true);
    expect((await client.fetch('/projects')).redirected).toBe(false);
    server.next(faulty.answer(302, { location: `${there.origin}/api/v2/projects` }));
    const left = await client.fetch('/projects');
    expect([left.status, left.headers.get('location')]).toEqual([302, `${there.origin}/api/v2/projects`]);
    expect(there.requests).toEqual([]);
  });
});

describe('fetch obeys', () => {
  test('`redirect`: manual returns the redirect, error rejects', async () => {
    server.always(faulty.answer(302, { location: '/api/v2/other' }));
    expect((await client.fetch('/projects', { redirect: 'manual' })).status).toBe(302);
    // Its body never ends: it is cancelled.
    const head = faulty.head(302, { location: '/api/v2/other', 'content-length': '100' });
    server.next((socket) => void socket.write(head));
    await expect(client.fetch('/projects', { redirect: 'error' })).rejects.toBeInstanceOf(TypeError);
    expect(http.pending).toBe(0);
    expect(targets()).toEqual(['GET /api/v2/projects', 'GET /api/v2/projects']);
  });

  test('`signal`, before the response and while its body is read', async () => {
    const reason = new Error('enough');
    await expect(client.fetch('/projects', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    for (const why of [undefined, 'not an error']) {
      const controller = new AbortController();
      server.next(broken.drip(5));
      const response = await client.fetch('/projects', { signal: controller.signal });
      const reading = expect(response.text()).rejects.toMatchObject({ name: 'AbortError' });
      controller.abort(why);
      await reading;
    }
    server.next(faulty.hang());
    const late = new AbortController();
    const request = new Request(`${server.origin}/x`, { signal: late.signal });
    const waiting = expect(client.fetch(request)).rejects.toMatchObject({ name: 'AbortError' });
    await server.received(3);
    late.abort();
    await waiting;
  });

  test('a missing grant, with a NotAuthorizedError', async () => {
    source.current = undefined;
    await expect(client.fetch('/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
  });

  test('a service that does not answer, with a ServiceUnavailableError', async () => {
    const { client } = createFixture(faulty.REFUSING_ORIGIN);
    await expect(client.fetch('/projects')).rejects.toMatchObject({ code: 'ERR_SERVICE_UNAVAILABLE', sent: false });
  });

  test('a 401 that stays: it is the response', async () => {
    server.always(faulty.json({ error: 'invalid_token' }, 401));
    expect((await client.fetch('/projects')).status).toBe(401);
    expect(server.requests).toHaveLength(2);
  });
});
