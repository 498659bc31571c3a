import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { crowdinHttpClient } from 'passport-oauth-app/providers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ApiClient } from '../../src/api/api-client.js';
import type { FetchInit } from '../../src/api/call-options.js';
import type { RequestBodyInit } from '../../src/api/request-body.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import { createFixture, type Fixture } from './fixture.js';

const STORAGES = 'https://api.crowdin.com/api/v2/storages';

const TIMEOUT_MS = 5_000;
const ALMOST_MS = TIMEOUT_MS - 1_000;
const LONG_MS = 60 * 60_000;

/** More than the buffers of a connection hold. */
const STEP_BYTES = 12e6;
const STEPS = 4;

let server: Server;
let fixture: Fixture;

beforeEach(async () => {
  stopTime();
  server = createServer({ keepAliveTimeout: 0 }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  fixture = createFixture(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { timeoutMs: TIMEOUT_MS });
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Takes an upload in steps, each within the time limit, all together beyond it. Returns how many bytes there were. */
async function takeSlowly(): Promise<number> {
  const [req, res] = await once(server, 'request');
  let received = 0;
  let wanted = 0;
  for await (const chunk of req as IncomingMessage) {
    received += chunk.length;
    if (received < wanted) continue;
    wanted += STEP_BYTES;
    vi.advanceTimersByTime(ALMOST_MS);
  }
  res.setHeader('content-type', 'application/json').end('{"data":{"id":1}}');
  return received;
}

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

describe('an upload that flows takes longer than `timeout`, and ends well', threats(80), () => {
  const bytes = Buffer.alloc(STEPS * STEP_BYTES, 'x');
  const post = (client: ApiClient, body: RequestBodyInit) =>
    client.fetch('/storages', { method: 'POST', body }).then(({ status }) => status);

  test.each<[string, (client: ApiClient) => Promise<unknown>]>([
    ['bytes', (client) => post(client, bytes)],
    ['a text', (client) => post(client, bytes.toString())],
    ['a Blob', (client) => post(client, new Blob([bytes]))],
    ['an async iterable', (client) => post(client, inPieces(bytes))],
    ['a Readable', (client) => post(client, Readable.from(inPieces(bytes)))],
    ['a Request', (client) => client.fetch(new Request(`${client.baseUrl}/x`, { method: 'PUT', body: bytes }))],
    ['bytes of stream()', (client) => client.stream('POST', '/storages', { body: bytes })],
    ['bytes by the official SDK', (client) => crowdinHttpClient(client).post(STORAGES, bytes)],
  ])('of %s', async (_what, upload) => {
    const received = takeSlowly();
    const result = await upload(fixture.client);
    expect(result).toBeTruthy();
    expect(await received).toBe(bytes.length);
  });

  test.each<[string, (client: ApiClient) => Promise<unknown>]>([
    ['fetch', (client) => post(client, bytes)],
    ['the official SDK', (client) => crowdinHttpClient(client).post(STORAGES, bytes)],
  ])('and by %s ends with the time limit once nothing flows any more', async (_what, upload) => {
    const received = once(server, 'request');
    const result = expect(upload(fixture.client)).rejects.toThrow(/no complete response from 127\.0\.0\.1:\d+ in time/);
    const [req] = await received;
    await once(req, 'readable');
    // The upload fills the buffers of the connection before.
    for (let round = 0; round < 50 && fixture.http.pending > 0; round++) {
      await new Promise(setImmediate);
      vi.advanceTimersByTime(TIMEOUT_MS + 50);
    }
    await result;
  });
});

describe('`timeout` of fetch', () => {
  /** Answers with its headers and a part of the body. Returns how to write more. */
  async function begun(type: string, init?: FetchInit): Promise<{ response: Response; write(text: string): void }> {
    const received = once(server, 'request');
    const pending = fixture.client.fetch('/events', init);
    const [, res] = await received;
    res.writeHead(200, { 'content-type': type }).write('one');
    return { response: await pending, write: (text) => res.end(text) };
  }

  test.each<[what: string, type: string, timeout: number | undefined, silenceMs: number]>([
    ['the time limit of the strategy', 'application/json', undefined, TIMEOUT_MS],
    ['its own', 'application/json', 60_000, 60_000],
    ['its own in an event stream too', 'text/event-stream', 60_000, 60_000],
  ])('is %s: silence ends the body, and less does not', async (_what, type, timeout, silenceMs) => {
    const { response, write } = await begun(type, { timeout });
    const reader = response.body?.getReader();
    await reader?.read();
    const second = reader?.read();
    await new Promise(setImmediate);
    vi.advanceTimersByTime(silenceMs - 100);
    write('two');
    expect((await second)?.value).toEqual(new Uint8Array(Buffer.from('two')));
    const other = await begun(type, { timeout });
    const failed = expect(other.response.text()).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT' });
    await new Promise(setImmediate);
    vi.advanceTimersByTime(silenceMs + 100);
    await failed;
  });

  test.each<[what: string, type: string, timeout: number | undefined]>([
    ['0', 'application/json', 0],
    ['not set, and the body an event stream', 'text/event-stream', undefined],
    ['not set, and the body an event stream with a charset', 'Text/Event-Stream; charset=utf-8', undefined],
  ])('is %s: no silence is too long', async (_what, type, timeout) => {
    const { response, write } = await begun(type, { timeout });
    const reading = response.text();
    await new Promise(setImmediate);
    vi.advanceTimersByTime(LONG_MS);
    write('two');
    expect(await reading).toBe('onetwo');
  });

  test('counts for the headers, which a longer one waits for and 0 waits for without end', async () => {
    for (const [timeout, waitMs] of [
      [60_000, 59_000],
      [0, LONG_MS],
    ] as const) {
      const received = once(server, 'request');
      const pending = fixture.client.fetch('/slow', { timeout });
      const [, res] = await received;
      vi.advanceTimersByTime(waitMs);
      res.end('{}');
      expect((await pending).status).toBe(200);
    }
    const received = once(server, 'request');
    const call = fixture.client.fetch('/slow', { timeout: 100 });
    const failed = expect(call).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT' });
    await received;
    vi.advanceTimersByTime(150);
    await failed;
  });

  test('reaches fetch from crowdinHttpClient', async () => {
    const httpClient = crowdinHttpClient(fixture.client, { timeout: 60_000 });
    const received = once(server, 'request');
    const pending = httpClient.get<object>(STORAGES);
    const [, res] = await received;
    vi.advanceTimersByTime(59_000);
    res.end('{"data":{"id":7}}');
    expect(await pending).toEqual({ data: { id: 7 } });
  });

  test.each([-1, Number.NaN, '5', null])('is a TypeError for %j', async (timeout) => {
    // @ts-expect-error what JavaScript may give
    await expect(fixture.client.fetch('/projects', { timeout })).rejects.toThrow(/timeout: expected milliseconds/);
  });
});
