import { createReadStream, openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ReadableStream } from 'node:stream/web';
import { describe, expect, test } from 'vitest';
import * as faulty from '../support/faulty-server.js';
import { client, server, startApiForEachTest, tokenOf } from './fixture.js';

startApiForEachTest();

const lastRequest = () => server.requests.at(-1);

async function* pieces(): AsyncGenerator<string> {
  yield 'a';
  yield 'b';
}

function webStream(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from('ab'));
      controller.close();
    },
  });
}

describe('a body that can be sent again', () => {
  const form = () => {
    const data = new FormData();
    data.append('file', new Blob(['ab']), 'a.txt');
    return data;
  };
  test.each<[string, () => string | ArrayBuffer | DataView | URLSearchParams | Blob | FormData, string | undefined]>([
    ['text', () => 'ab', undefined],
    ['an ArrayBuffer', () => new Uint8Array([97, 98]).buffer, undefined],
    ['a DataView', () => new DataView(new Uint8Array([0, 97, 98]).buffer, 1), undefined],
    ['a Blob', () => new Blob(['ab'], { type: 'text/x-own' }), 'text/x-own'],
    ['a Blob without a type', () => new Blob(['ab']), undefined],
    ['a File', () => new File(['ab'], 'a.txt', { type: 'text/plain' }), 'text/plain'],
    ['URLSearchParams', () => new URLSearchParams({ ab: '' }), 'application/x-www-form-urlencoded;charset=UTF-8'],
    ['a form', form, 'multipart/form-data'],
  ])('is %s', async (_what, make, type) => {
    server.next(faulty.json({}, 401));
    server.next(faulty.json({}, 429));
    await client.post('/storages', { body: make() });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
      ['first', 'refresh-1', 'refresh-1'].map((name) => `Bearer ${tokenOf(name)}`),
    );
    const [first, ...others] = server.requests;
    for (const { body } of others) expect(body).toEqual(first?.body);
    expect(first?.body.toString()).toContain('ab');
    expect(first?.headers['content-length']).toBe(String(first?.body.length));
    if (type === undefined) expect(first?.headers).not.toHaveProperty('content-type');
    else expect(first?.headers['content-type']).toContain(type);
  });

  test('is a file of fs.openAsBlob, alone and in a form', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bodies-'));
    await writeFile(join(folder, 'texts.json'), '{"a":1}');
    const file = await openAsBlob(join(folder, 'texts.json'), { type: 'application/json' });
    server.next(faulty.json({}, 401));
    await client.post('/storages', { body: file });
    expect(server.requests.map(({ body }) => body.toString())).toEqual(['{"a":1}', '{"a":1}']);
    const form = new FormData();
    form.append('file', file, 'texts.json');
    await client.post('/files', { body: form });
    const { body, headers } = lastRequest() ?? expect.fail();
    const parsed = await new Response(new Uint8Array(body), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData();
    expect(await (parsed.get('file') as File).text()).toBe('{"a":1}');
    await rm(folder, { recursive: true });
  });
});

describe('a body that is sent once', () => {
  test.each<[string, () => Readable | ReadableStream | AsyncIterable<string>]>([
    ['a Readable', () => Readable.from(['a', 'b'])],
    ['a web stream', webStream],
    ['an async iterable', pieces],
  ])('is %s', async (_what, make) => {
    await client.post('/storages', { body: make() });
    expect(lastRequest()?.body.toString()).toBe('ab');
    server.next(faulty.json({}, 503));
    await expect(client.put('/storages', { body: make() })).rejects.toMatchObject({ status: 503 });
    server.next(faulty.json({}, 429));
    await expect(client.post('/storages', { body: make() })).rejects.toMatchObject({ status: 429 });
    expect(server.requests).toHaveLength(3);
  });

  test('says after a 401 that the token is renewed and the call is to be made anew, which then works', async () => {
    server.next(faulty.json({}, 401));
    const error = await client.post('/storages', { body: Readable.from(['a']) }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ name: 'ApiError', status: 401 });
    expect((error as Error).message).toContain('Repeat the call');
    expect((error as Error).message).not.toContain('authorize');
    await client.post('/storages', { body: Readable.from(['a']) });
    expect(lastRequest()?.headers.authorization).toBe(`Bearer ${tokenOf('refresh-1')}`);
  });

  test('may come with its length', async () => {
    const body = () => Readable.from(['ab']);
    await client.post('/storages', { body: body(), headers: { 'Content-Length': 2 } });
    expect(lastRequest()?.headers).toMatchObject({ 'content-length': '2' });
    expect(lastRequest()?.headers).not.toHaveProperty('transfer-encoding');
    await expect(client.post('/storages', { body: 'ab', headers: { 'Content-Length': 2 } })).rejects.toThrow(TypeError);
  });

  test.each(['a', 'abc'])('is refused if it has another length than it comes with: %s', async (content) => {
    const call = client.post('/storages', { body: Readable.from([content]), headers: { 'Content-Length': 2 } });
    await expect(call).rejects.toThrow(
      new TypeError('body: expected a stream with as many bytes as the header Content-Length says'),
    );
  });

  test('is refused if it was read, or destroyed, before', async () => {
    const read = Readable.from(['a']);
    await text(read);
    const destroyed = new Readable({ read() {} }).destroy();
    const web = webStream();
    for await (const _chunk of web);
    const locked = webStream();
    locked.getReader();
    for (const body of [read, destroyed, web, locked]) {
      await expect(client.post('/storages', { body })).rejects.toThrow(/read or destroyed already/);
    }
    expect(server.requests).toEqual([]);
  });

  test('that the caller destroys while it is sent ends the call with an AbortError, and not with a fault of the service', async () => {
    const body = new Readable({ read() {} });
    body.push('begun');
    server.next((socket) => {
      socket.pause();
    });
    const call = expect(client.post('/storages', { body })).rejects.toMatchObject({ name: 'AbortError' });
    await expect.poll(() => server.open).toBe(1);
    body.destroy();
    await call;
  });

  test('is given up if the file does not exist', async () => {
    const body = createReadStream('/no/such/file');
    await expect(client.post('/storages', { body })).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

test.each([
  ['a Map', new Map([['a', 'b']])],
  ['an array', ['a']],
  ['a number', 7],
  ['an object', { a: 1 }],
])('%s is not a body: a TypeError that names the kinds, and nothing is sent', async (_what, body) => {
  // @ts-expect-error: not a body by its type either
  await expect(client.post('/storages', { body })).rejects.toThrow(/expected a string, bytes, Blob/);
  expect(server.requests).toEqual([]);
});

test('a query may be typed by an interface', async () => {
  interface Filter {
    limit?: number;
    tag: string[];
  }
  const query: Filter = { tag: ['a', 'b'] };
  await client.get('/projects', { query });
  await client.projects(query);
  expect(server.requests.map(({ target }) => target)).toEqual(Array(2).fill('/api/v2/projects?tag=a&tag=b'));
});
