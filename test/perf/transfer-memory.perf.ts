import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { forward } from 'passport-oauth-app';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFixture, type Fixture } from '../api/fixture.js';
import * as broken from '../support/broken-answers.js';
import * as faulty from '../support/faulty-server.js';
import { browser, loggedIn, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import type { Handler } from '../support/world.js';

/** Bytes of each transfer: some in a usual run, 2e9 for the figures. */
const TRANSFER = Number(process.env.TRANSFER_BYTES ?? 256e6);

const MAX_GROWTH_BYTES = 150e6;

let server: Server;
let fixture: Fixture;
let received = 0;
let refusals = 0;

beforeEach(async () => {
  received = 0;
  const chunk = Buffer.alloc(64 * 1024, 'x');
  server = createServer({ keepAliveTimeout: 0 }, (req, res) => {
    if (req.method === 'GET') {
      let left = TRANSFER;
      const write = () => {
        while (left > 0) {
          left -= chunk.length;
          if (!res.write(chunk)) return void res.once('drain', write);
        }
        res.end();
      };
      return write();
    }
    let length = 0;
    req.on('data', (part: Buffer) => {
      length += part.length;
    });
    req.on('end', () => {
      received = length;
      res.statusCode = refusals-- > 0 ? 401 : 200;
      res.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  fixture = createFixture(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { timeoutMs: 600_000 });
});

afterEach(async () => {
  await fixture.http.close();
  server.closeAllConnections();
  server.close();
});

/** Returns by how much the memory of this process grew at most while `work` ran. */
async function growthOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss;
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 10);
  await work();
  clearInterval(timer);
  return most - before;
}

test('a large file is sent, and sent again after a 401, in constant memory', { timeout: 600_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-'));
  const path = join(folder, 'large');
  await writeFile(path, '');
  await truncate(path, TRANSFER);
  const body = await openAsBlob(path);
  refusals = 1;
  expect(await growthOf(() => fixture.client.post('/storages', { body }))).toBeLessThan(MAX_GROWTH_BYTES);
  expect(received).toBe(TRANSFER);
  expect(fixture.source.refreshes).toBe(1);
  await rm(folder, { recursive: true });
});

test('a large download is read in constant memory, by stream and by fetch', { timeout: 600_000 }, async () => {
  const count = async (chunks: AsyncIterable<Uint8Array> | null) => {
    let length = 0;
    for await (const chunk of chunks ?? []) length += chunk.length;
    expect(length).toBeGreaterThanOrEqual(TRANSFER);
  };
  const streamed = async () => count((await fixture.client.stream('GET', '/export')).body);
  expect(await growthOf(streamed)).toBeLessThan(MAX_GROWTH_BYTES);
  const fetched = async () => count((await fixture.client.fetch('/export')).body);
  expect(await growthOf(fetched)).toBeLessThan(MAX_GROWTH_BYTES);
});

test('a large file passes through forward() in constant memory, each way', {
  ...threats(85),
  timeout: 600_000,
}, async () => {
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await loggedIn({
    strategy: { baseUrl, timeout: 600_000 },
    routes: (app, { strategy }) => app.use('/api', forward(strategy, { allow: ['* /export'] }) as Handler),
  });
  const cookie = browser.cookieHeader(world.url);
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  const download = async () => {
    const [response] = await once(request(`${world.url}/api/export`, { headers }).end(), 'response');
    let length = 0;
    for await (const chunk of response) length += chunk.length;
    expect(length).toBeGreaterThanOrEqual(TRANSFER);
  };
  const upload = async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const chunks = function* () {
      for (let left = TRANSFER; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
    };
    const outgoing = request(`${world.url}/api/export`, {
      method: 'PUT',
      headers: { ...headers, 'content-length': TRANSFER },
    });
    const answered = once(outgoing, 'response');
    await pipeline(Readable.from(chunks()), outgoing);
    expect((await answered)[0].statusCode).toBe(200);
    expect(received).toBe(TRANSFER);
  };
  expect(await growthOf(download)).toBeLessThan(MAX_GROWTH_BYTES);
  expect(await growthOf(upload)).toBeLessThan(MAX_GROWTH_BYTES);
  await world.close();
});

test('a gzip bomb is decoded up to the limit, in little memory', async () => {
  const bomb = await faulty.startFaultyServer();
  bomb.always(broken.gzipBomb(100));
  const { client, http } = createFixture(bomb.origin, { maxResponseBytes: 128 * 1024 });
  const growth = await growthOf(() =>
    expect(client.get('/x')).rejects.toMatchObject({ code: 'ERR_API_RESPONSE', cause: { kind: 'too-large' } }),
  );
  expect(growth).toBeLessThan(50e6);
  await http.close();
  await bomb.close();
});
