import { getEventListeners, once } from 'node:events';
import type { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { Agent, type Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StreamedExchange } from '../../src/fetch/streamed-exchange.js';
import { HttpClient, lookupHost } from '../../src/http/http-client.js';
import type { HttpRequest } from '../../src/http/message.js';
import * as broken from '../support/broken-answers.js';
import { fastForward } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';

let server: faulty.FaultyServer;
let http: HttpClient;

beforeEach(async () => {
  server = await faulty.startFaultyServer();
  http = new HttpClient();
});

afterEach(async () => {
  await server.close();
  await http.close();
});

/** Whether the time of a limit passes: not before the server has the request. */
const isReceived = () => server.requests.length > 0;

function request(more: Partial<HttpRequest> = {}): HttpRequest {
  const { origin } = server;
  return { origin, path: '/x?y=1', method: 'GET', headers: ['accept', '*/*'], timeoutMs: 5_000, ...more };
}

describe('a request', () => {
  test('goes out as it was given, and its answer comes as a whole', async () => {
    server.next(faulty.json({ a: 1 }, 201, { 'x-one': '1' }));
    const headers = { 'content-type': 'application/json' };
    const sent = request({ method: 'POST', body: '{"b":2}', headers: Object.entries(headers).flat() });
    const answer = { status: 201, headers: { 'x-one': '1' }, body: Buffer.from('{"a":1}') };
    expect(await http.send(sent)).toMatchObject(answer);
    const body = Buffer.from('{"b":2}');
    expect(server.requests[0]).toMatchObject({ method: 'POST', target: '/x?y=1', headers, body });
  });

  test('reuses connections', async () => {
    for (let count = 0; count < 10; count++) await http.send(request());
    // Two, because undici lets a connection rest for a turn of the event loop.
    expect(server.open).toBeLessThanOrEqual(2);
  });

  test('to a name below localhost goes to loopback, and keeps its Host', async () => {
    await http.send(request({ origin: `http://acme.api.localhost:${server.port}` }));
    expect(server.requests[0]?.headers.host).toBe(`acme.api.localhost:${server.port}`);
  });

  test('does not follow redirects', async () => {
    server.next(faulty.answer(302, { location: '/elsewhere' }));
    expect(await http.send(request())).toMatchObject({ status: 302, headers: { location: '/elsewhere' } });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['HEAD', 200, { 'content-length': '1000', 'content-encoding': 'gzip' }],
    ['GET', 204, {}],
    ['GET', 304, {}],
  ])('%s with %i has no body', async (method, status, headers) => {
    server.next(faulty.raw(faulty.head(status, headers)));
    const answer = await http.send(request({ method, maxBytes: 10 }));
    expect(answer.status).toBe(status);
    expect(answer.body).toHaveLength(0);
  });

  test('is not disturbed by informational answers', async () => {
    server.next(
      faulty.raw('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'),
    );
    expect((await http.send(request())).body.toString()).toBe('{}');
  });

  test('keeps a header that came 32,000 times as a list, in time that grows with its length alone', async () => {
    server.next(faulty.raw(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(32_000)}content-length: 0\r\n\r\n`));
    const dispatcher = new Agent({ maxHeaderSize: 1e6 });
    expect((await new HttpClient({ dispatcher }).send(request())).headers.a).toHaveLength(32_000);
    await dispatcher.close();
  });
});

describe('nothing left', threats(36), () => {
  test.each([
    ['a refused connection', () => faulty.REFUSING_ORIGIN, { cause: { code: 'ECONNREFUSED' } }],
    ['a name that does not resolve', () => 'http://nobody.invalid', {}],
    ['a server that speaks no TLS', () => server.origin.replace('http:', 'https:'), {}],
  ])('%s', async (_what, originOf, more) => {
    const error = { name: 'TransportError', kind: 'connect', sent: false, ...more };
    await expect(http.send(request({ origin: originOf() }))).rejects.toMatchObject(error);
  });
});

describe('the limit of time holds', threats(37), () => {
  test.each([
    ['a service that never answers', faulty.hang()],
    ['a slow drip', broken.drip(5)],
  ])('over %s', async (_name, behaviour) => {
    server.next(behaviour);
    const failure = fastForward(() => http.send(request()), isReceived);
    await expect(failure).rejects.toMatchObject({ kind: 'timeout', sent: true });
    expect(http.pending).toBe(0);
  });

  test('over a request that waits for a connection, which is then never sent', async () => {
    const dispatcher = new Agent({ connections: 1 });
    const narrow = new HttpClient({ dispatcher });
    server.next(faulty.hang());
    await fastForward(async () => {
      const first = narrow.send(request());
      const second = narrow.send(request({ timeoutMs: 1_000, method: 'POST', path: '/second' }));
      await expect(second).rejects.toMatchObject({ kind: 'timeout', sent: false });
      await expect(first).rejects.toMatchObject({ kind: 'timeout', sent: true });
    }, isReceived);
    await narrow.send(request({ path: '/third' }));
    expect(server.requests.map(({ target }) => target)).toEqual(['/x?y=1', '/third']);
    await dispatcher.close();
  });

  test('of more than 2^31 ms does not fire at once', async () => {
    await http.send(request({ timeoutMs: 2 ** 40 }));
    await http.send(request({ timeoutMs: Infinity }));
  });
});

describe('the request left', threats(38), () => {
  test.each([
    ['a reset', faulty.reset()],
    ['a hang-up', broken.hangUp()],
    ['a truncated body', broken.truncated()],
  ])('%s is told as such', async (_name, behaviour) => {
    server.next(behaviour);
    await expect(http.send(request({ method: 'POST' }))).rejects.toMatchObject({ kind: 'reset', sent: true });
    expect(server.requests).toHaveLength(1);
  });

  test('a response that is not HTTP is reported as such', async () => {
    server.next(faulty.raw('SSH-2.0-OpenSSH\r\n\r\n'));
    await expect(http.send(request())).rejects.toMatchObject({ kind: 'protocol', sent: true });
  });
});

describe('the limit of size holds', threats(31), () => {
  test('over a length that is announced', async () => {
    server.next(faulty.json({ long: 'x'.repeat(100) }));
    await expect(http.send(request({ maxBytes: 100 }))).rejects.toMatchObject({ kind: 'too-large' });
  });

  test('over 100 MB that are not, of which little is received', async () => {
    const sent = { bytes: 0 };
    server.next(broken.huge(100e6, sent));
    await expect(http.send(request({ maxBytes: 64 * 1024 }))).rejects.toMatchObject({ kind: 'too-large' });
    expect(sent.bytes).toBeLessThan(20e6);
  });

  test('over a gzip bomb', async () => {
    server.next(broken.gzipBomb(100));
    await expect(http.send(request({ maxBytes: 128 * 1024 }))).rejects.toMatchObject({ kind: 'too-large' });
  });

  test('exactly: one byte less passes', async () => {
    server.always(faulty.answer(200, { 'content-encoding': 'gzip' }, gzipSync('x'.repeat(1000))));
    expect((await http.send(request({ maxBytes: 1000 }))).body).toHaveLength(1000);
    await expect(http.send(request({ maxBytes: 999 }))).rejects.toMatchObject({ kind: 'too-large' });
  });
});

describe('content encodings', () => {
  test.each([
    ['gzip', gzipSync('body')],
    ['x-gzip', gzipSync('body')],
    ['GZIP', gzipSync('body')],
    ['deflate', deflateSync('body')],
    ['deflate', deflateRawSync('body')],
    ['br', brotliCompressSync('body')],
    ['identity', Buffer.from('body')],
  ])('%s is decoded', async (encoding, body) => {
    server.next(faulty.answer(200, { 'content-encoding': encoding }, body));
    expect((await http.send(request())).body.toString()).toBe('body');
  });

  test('what described the encoded body is gone from the headers', async () => {
    server.next(faulty.answer(200, { 'content-encoding': 'gzip', etag: '"1"' }, gzipSync('body')));
    expect((await http.send(request())).headers).toEqual({ etag: '"1"' });
  });

  test.each([
    ['chained ones', broken.chainedEncodings(), 'gzip, gzip'],
    ['an unknown one', faulty.answer(200, { 'content-encoding': 'zstd' }, 'x'), 'zstd'],
    ['one of the names of Object', faulty.answer(200, { 'content-encoding': 'constructor' }, 'x'), 'constructor'],
  ])('%s are left as they are, and stay in the headers', async (_name, behaviour, encoding) => {
    server.always(behaviour);
    const { headers, body } = await http.send(request());
    expect(headers['content-encoding']).toBe(encoding);
    expect(body).toHaveLength(Number(headers['content-length']));
    const streamed = await stream();
    expect(streamed.headers['content-encoding']).toBe(encoding);
    expect(await buffer(streamed.body)).toEqual(body);
  });

  test.each([
    ['a damaged body', faulty.answer(200, { 'content-encoding': 'gzip' }, 'not gzip')],
    ['a truncated body', faulty.answer(200, { 'content-encoding': 'gzip' }, gzipSync('body').subarray(0, 12))],
  ])('%s is refused', async (_name, behaviour) => {
    server.next(behaviour);
    await expect(http.send(request())).rejects.toMatchObject({ kind: 'encoding' });
  });
});

describe('an aborted request', () => {
  test('ends at once and closes its connection', async () => {
    server.next(faulty.hang());
    const controller = new AbortController();
    const aborted = http.send(request({ signal: controller.signal }));
    await server.received(1);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ kind: 'aborted', sent: true });
    await expect.poll(() => server.open).toBe(0);
  });

  test('that was aborted before is not sent', async () => {
    const failure = http.send(request({ signal: AbortSignal.abort() }));
    await expect(failure).rejects.toMatchObject({ kind: 'aborted', sent: false });
    await http.send(request({ path: '/other' }));
    expect(server.requests.map(({ target }) => target)).toEqual(['/other']);
  });

  test('leaves no listener on its signal', async () => {
    const { signal } = new AbortController();
    await http.send(request({ signal }));
    server.next(faulty.reset());
    await http.send(request({ signal })).catch(() => {});
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('a dispatcher of the user', () => {
  test('is used, and left open', async () => {
    const dispatcher = new Agent();
    const own = new HttpClient({ dispatcher });
    await own.send(request());
    await own.close();
    expect(dispatcher.closed).toBe(false);
    await dispatcher.close();
  });

  test('may be that of another undici, such as the one built into Node', async () => {
    await fetch('data:,');
    const dispatcher: Dispatcher = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'));
    const own = new HttpClient({ dispatcher });
    server.next(faulty.raw('HTTP/1.1 200 OK\r\nX-A: b\r\nx-a: c\r\ncontent-length: 2\r\n\r\n{}'));
    const answer = { status: 200, headers: { 'x-a': ['b', 'c'] }, body: Buffer.from('{}') };
    expect(await own.send(request())).toMatchObject(answer);
    const refused = own.send(request({ origin: faulty.REFUSING_ORIGIN }));
    await expect(refused).rejects.toMatchObject({ kind: 'connect', sent: false });
    server.next(faulty.reset());
    await expect(own.send(request({ method: 'POST' }))).rejects.toMatchObject({ kind: 'reset', sent: true });
    server.next(faulty.hang());
    const sent = server.requests.length;
    const late = fastForward(
      () => own.send(request()),
      () => server.requests.length > sent,
    );
    await expect(late).rejects.toMatchObject({ kind: 'timeout', sent: true });
    server.next(broken.huge(3e6));
    const { body } = await stream(own);
    let length = 0;
    for await (const chunk of body) length += chunk.length;
    expect(length).toBeGreaterThanOrEqual(3e6);
  });

  /** Calls these methods of the handler, one after the other. */
  const calls =
    (...events: readonly (readonly [keyof Dispatcher.DispatchHandler, ...unknown[]])[]): Dispatcher.Dispatch =>
    (_options, handler) => {
      for (const [name, ...args] of events) Reflect.apply(handler[name] ?? expect.fail, handler, [controller, ...args]);
      return true;
    };
  const [start, response, end] = [
    ['onRequestStart', {}],
    ['onResponseStart', 200, {}, 'OK'],
    ['onResponseEnd', {}],
  ] as const;
  const failure = (message: string) => ['onResponseError', new Error(message)] as const;
  const data = (bytes: Uint8Array) => ['onResponseData', bytes] as const;

  test.each<[string, Dispatcher.Dispatch]>([
    ['throws', () => expect.fail('broken')],
    ['reports an error twice', calls(failure('first'), failure('second'))],
    ['fails after the end', calls(start, failure('reset'), response, data(Buffer.from('late')), end)],
    ['ends without a response', calls(start, end)],
  ])('that %s makes one rejection and nothing else', async (_name, dispatch) => {
    const own = new HttpClient({ dispatcher: { dispatch } as unknown as Dispatcher });
    await expect(own.send(request())).rejects.toMatchObject({ name: 'TransportError' });
    const body = new PassThrough();
    await expect(stream(own, 'silence', body)).rejects.toMatchObject({ name: 'TransportError' });
    body.write('late');
    expect(own.pending).toBe(0);
  });

  test('that reports two responses and bytes of any kind gives the first response', async () => {
    const again = ['onResponseStart', 500, {}, 'Once more'] as const;
    const dispatch = calls(start, response, again, data(new TextEncoder().encode('text')), end);
    const own = new HttpClient({ dispatcher: { dispatch } as unknown as Dispatcher });
    const { status, body } = await own.send(request());
    expect([status, body.toString()]).toEqual([200, 'text']);
  });
});

/** Sends a request whose response is streamed. */
const stream = (client = http, timeoutCovers: 'silence' | 'total' = 'silence', body: Readable | null = null) =>
  client.send({ ...request(), timeoutCovers, body }, StreamedExchange<never>);

const idle = () => {};
const controller = { aborted: false, paused: false, reason: null, abort: idle, pause: idle, resume: idle };

describe('a stream', () => {
  test('is there with its headers, and is received as fast as it is read', async () => {
    const sent = { bytes: 0 };
    server.next(broken.huge(100e6, sent));
    const { status, body } = await stream();
    expect(status).toBe(200);
    await once(body, 'readable');
    await expect.poll(async () => [sent.bytes, await settled(() => sent.bytes)]).toSatisfy(([a, b]) => a === b);
    expect(sent.bytes).toBeLessThan(20e6);
    body.destroy();
    await expect.poll(() => server.open).toBe(0);
    expect(http.pending).toBe(0);
  });

  test('is decoded', async () => {
    server.next(faulty.answer(200, { 'content-encoding': 'gzip' }, gzipSync('body')));
    const { body, headers } = await stream();
    expect(await text(body)).toBe('body');
    expect(headers).toEqual({});
  });

  test.each([
    ['cut short', broken.truncated(), 'reset'],
    ['damaged', faulty.answer(200, { 'content-encoding': 'gzip' }, 'not gzip at all'), 'encoding'],
    ['damaged, with brotli,', faulty.answer(200, { 'content-encoding': 'br' }, 'not brotli at all'), 'encoding'],
  ])('that is %s fails', async (_name, behaviour, kind) => {
    server.next(behaviour);
    const { body } = await stream();
    await expect(text(body)).rejects.toMatchObject({ name: 'TransportError', kind });
  });

  test('that falls silent fails, but not while it is not read', async () => {
    server.next(faulty.raw(`${faulty.head(200, { 'content-length': '1000' })}begun`));
    stopTime();
    const { body } = await stream();
    vi.advanceTimersByTime(60_000);
    const failed = expect(text(body)).rejects.toMatchObject({ kind: 'timeout' });
    await new Promise(setImmediate);
    vi.advanceTimersByTime(5_100);
    await failed;
  });

  test.each([
    ['the whole is cut', 'total', 2],
    ['silence does not end while bytes arrive', 'silence', 10],
  ] as const)('whose limit covers %s, drip or not', async (_what, timeoutCovers, chunks) => {
    let connection: Socket | undefined;
    server.next((socket) => {
      connection = socket;
      socket.write(`${faulty.head(200, { 'content-length': '10' })}1`);
    });
    stopTime();
    const { body } = await stream(http, timeoutCovers);
    let count = 0;
    const reading = (async () => {
      for await (const _chunk of body) {
        count += 1;
        vi.advanceTimersByTime(4_000);
        connection?.write('1');
      }
    })().catch((error: unknown) => error);
    expect(await reading).toEqual(
      timeoutCovers === 'silence' ? undefined : expect.objectContaining({ kind: 'timeout' }),
    );
    expect(count).toBe(chunks);
  });

  test('is what a body may be, which then fails with its own error', async () => {
    const own = new Error('the disk is gone');
    const body = new Readable({
      read() {
        this.destroy(own);
      },
    });
    await expect(http.send(request({ method: 'POST', body }))).rejects.toBe(own);
  });
});

async function settled(value: () => number): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 30));
  return value();
}

describe('look-up of names', () => {
  const look = (name: string, options: object) =>
    new Promise((resolve, reject) =>
      lookupHost(name, options, (fault, ...found) => (fault ? reject(fault) : resolve(found))),
    );

  test.each(['localhost', 'acme.api.localhost', 'LOCALHOST', 'localhost.'])(
    '%s is loopback (RFC 6761, 6.3)',
    async (name) => {
      expect(await look(name, {})).toEqual(['127.0.0.1', 4]);
      expect(await look(name, { family: 6 })).toEqual(['::1', 6]);
      const [four, six] = [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ];
      expect(await look(name, { all: true })).toEqual([[four, six]]);
    },
  );

  test.each(['localhost.example.com', 'notlocalhost'])('%s is an ordinary name', async (name) => {
    const code = expect.stringMatching(/ENOTFOUND|EAI_AGAIN/);
    await expect(look(`${name}.invalid`, {})).rejects.toMatchObject({ code });
  });
});

test('a 100 Continue that was not asked for is a broken connection: undici does not ignore it as RFC 9110, 15.2 wants', async () => {
  server.next(faulty.raw(`HTTP/1.1 100 Continue\r\n\r\n${faulty.head(200, { 'content-length': '0' })}`));
  await expect(http.send(request())).rejects.toMatchObject({ kind: 'reset', sent: true });
});

test('a closed client lets running requests end and refuses later ones', async () => {
  server.next((socket, received) => setImmediate(() => faulty.json({})(socket, received)));
  const running = http.send(request());
  await server.received(1);
  await Promise.all([http.close(), running]);
  const unused = new HttpClient();
  await unused.close();
  for (const closed of [http, unused])
    await expect(closed.send(request())).rejects.toMatchObject({ kind: 'closed', sent: false });
});

test('a closed client waits for an unread stream for a limited time', async () => {
  const own = new HttpClient({ graceMs: 30 });
  server.next(broken.huge(100e6));
  const { body } = await stream(own);
  await own.close();
  await expect(text(body)).rejects.toMatchObject({ name: 'TransportError' });
});

test('undici still has its Agent at the path that is loaded alone: the same class, with the same connections', async () => {
  const { default: AgentAlone } = await import('undici/lib/dispatcher/agent.js');
  expect(AgentAlone).toBe(Agent);
});
