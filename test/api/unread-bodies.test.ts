import { randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { ApiClient } from '../../src/api/api-client.js';
import * as broken from '../support/broken-answers.js';
import * as faulty from '../support/faulty-server.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import { client, createFixture, http, server, startApiForEachTest } from './fixture.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const MINUTE_MS = 60_000;
/** Time limits end up to two scans late. */
const LATE_MS = 100;
const TIMEOUT_MS = 5_000;

beforeEach(stopTime);
startApiForEachTest({ concurrency: 2, timeoutMs: TIMEOUT_MS });

/** Events that come in the first bytes of an answer which never ends. */
function openEvents(headers: Record<string, string> = {}): faulty.Behaviour {
  return faulty.raw(`${faulty.head(200, { 'content-type': 'text/event-stream', ...headers })}data: 1\n\n`);
}

/** More than all buffers on the way hold. */
const large: faulty.Behaviour = (socket, received) => broken.huge(50e6)(socket, received);
const compressed = faulty.answer(200, { 'content-encoding': 'gzip' }, gzipSync(randomBytes(20e6)));

/** Collects garbage until it has had this effect, within limits. */
async function collected(isDone: () => boolean): Promise<void> {
  for (let round = 0; round < 50 && !isDone(); round++) {
    collectGarbage();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  }
}

/** Not async, as nothing of what is lost may stay on the stack of somebody who waits. */
const lose = (taken: Promise<unknown>) => taken.then(() => {});

const pause = async (body: Readable) => {
  const target = new PassThrough();
  body.pipe(target);
  await new Promise((resolve) => target.once('readable', resolve));
};

type Take = (client: ApiClient) => Promise<unknown>;

const TAKES: readonly [what: string, behaviour: faulty.Behaviour, take: Take][] = [
  ['a Response', large, (client) => client.fetch('/export')],
  ['a Response without an end', openEvents(), (client) => client.fetch('/events')],
  ['a compressed Response', compressed, (client) => client.fetch('/export')],
  ['a Response of which a part was read', large, async (client) => (await client.fetch('/a')).body?.getReader().read()],
  ['a Response with a clone', large, async (client) => (await client.fetch('/export')).clone()],
  [
    'a Response in a pipe whose other end reads no more',
    large,
    async (client) => pause(Readable.fromWeb((await client.fetch('/export')).body as never)),
  ],
  ['a stream', large, (client) => client.stream('GET', '/export')],
  ['a stream without an end', openEvents(), (client) => client.stream('GET', '/events')],
  [
    'a stream in a pipe whose other end reads no more',
    large,
    async (client) => pause((await client.stream('GET', '/export')).body),
  ],
];

describe('nobody has the body any more', threats(80), () => {
  test.each(TAKES)('of %s: connection and place are given back once it is collected', async (_what, does, take) => {
    server.next(does, 2);
    for (let count = 0; count < 2; count++) await lose(take(client));
    expect(server.open).toBe(2);
    const next = client.get('/next');
    await collected(() => http.pending === 0);
    expect(http.pending).toBe(0);
    expect(await next).toEqual({});
  });

  test('but a body that is being read is not taken for one, whoever else has it', async () => {
    let end = () => {};
    server.next((socket) => {
      socket.write(`${faulty.head(200, { 'content-length': '6' })}one`);
      end = () => void socket.write('two');
    });
    server.next((socket) => socket.write(`${faulty.head(200, { 'content-length': '6' })}one`));
    const reading = client.stream('GET', '/export').then(({ body }) => text(body));
    await server.received(1);
    await lose(client.fetch('/lost'));
    await collected(() => http.pending === 1);
    expect(http.pending).toBe(1);
    end();
    expect(await reading).toBe('onetwo');
  });
});

describe('the reader of a body that somebody still has pauses', threats(80), () => {
  test.each(TAKES.filter(([what]) => !/pipe|part|clone/.test(what)))(
    'in front of %s: after the time limit another call gets its place, after minutes its connection ends',
    async (_what, does, take) => {
      server.next(does, 2);
      const taken = [await take(client), await take(client)];
      const error = { code: 'ERR_CONCURRENCY', message: expect.stringContaining('Read the bodies') };
      const ignored = expect(client.get('/early', { timeout: TIMEOUT_MS / 2 })).rejects.toMatchObject(error);
      vi.advanceTimersByTime(TIMEOUT_MS / 2 + LATE_MS);
      await ignored;
      vi.advanceTimersByTime(TIMEOUT_MS / 2 + LATE_MS);
      expect(await client.get('/next')).toEqual({});
      expect(server.open).toBeGreaterThanOrEqual(2);
      expect(http.pending).toBe(2);
      vi.advanceTimersByTime(5 * MINUTE_MS + LATE_MS);
      expect(http.pending).toBe(0);
      for (const one of taken) {
        const { body } = one as { body: ReadableStream | Readable };
        const read = body instanceof Readable ? text(body) : new Response(body).text();
        await expect(read).rejects.toMatchObject({ code: 'ERR_UNREAD_BODY', status: 503 });
      }
    },
  );

  test('for some minutes and reads on: nothing is lost', async () => {
    server.next(broken.huge(3e6));
    const { body } = await client.stream('GET', '/export');
    let length = 0;
    let pauses = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (++pauses < 5) vi.advanceTimersByTime(4 * MINUTE_MS);
    }
    expect(length).toBeGreaterThanOrEqual(3e6);
  });

  test('or is one of so many that no connection is free: after the time limit it ends for a call that waits', async () => {
    const { client, http } = createFixture(server.origin, { timeoutMs: TIMEOUT_MS });
    server.next(openEvents(), 256);
    const taken = await Promise.all(Array.from({ length: 256 }, () => client.fetch('/events')));
    // Pauses are as long as they like while no call waits.
    vi.advanceTimersByTime(3 * TIMEOUT_MS);
    expect(http.pending).toBe(256);
    const next = client.get('/next');
    await new Promise(setImmediate);
    vi.advanceTimersByTime(TIMEOUT_MS / 2);
    expect(await next).toEqual({});
    await expect(taken[0]?.text()).rejects.toMatchObject({ code: 'ERR_UNREAD_BODY' });
  });

  test('never, and no connection is free: the error says so, and does not blame the service', async () => {
    const { client } = createFixture(server.origin, { timeoutMs: TIMEOUT_MS });
    server.next(openEvents(), 256);
    const taken = await Promise.all(Array.from({ length: 256 }, () => client.fetch('/events')));
    const readers = taken.map(({ body }) => body?.getReader());
    for (let reads = 0; reads < 2; reads++) readers.forEach((reader) => void reader?.read().catch(() => {}));
    await new Promise(setImmediate);
    const message = expect.stringMatching(/for a connection to 127.* all are in use.* Read the bodies/);
    const error = { code: 'ERR_CONCURRENCY', sent: false, message };
    const refused = expect(client.get('/next')).rejects.toMatchObject(error);
    vi.advanceTimersByTime(TIMEOUT_MS + LATE_MS);
    await refused;
    await readers.pop()?.cancel();
    expect(await client.get('/next')).toEqual({});
    await Promise.all(readers.map((reader) => reader?.cancel()));
  });
});
