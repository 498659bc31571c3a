import type { ApiRequest, EmulatorOptions } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import { post, service, startService, tokensFor } from './plain-client.js';

type Content = NonNullable<RequestInit['body']>;

async function start(options: EmulatorOptions = {}): Promise<string> {
  await startService(options);
  return (await tokensFor()).access_token;
}

function upload(token: string, content: Content, headers: Record<string, string> = {}): Promise<Response> {
  const all = { authorization: `Bearer ${token}`, ...headers };
  return fetch(`${service.baseUrl}/api/v2/storages`, { method: 'POST', headers: all, body: content });
}

const route = (handler: (request: ApiRequest) => unknown) => ({ method: 'POST', path: '/storages', handler });
const everyByte = Uint8Array.from({ length: 256 }, (_none, byte) => byte);

describe('bytes', () => {
  test('a handler gets every byte of an upload, and what it returns arrives unchanged', async () => {
    const token = await start({ routes: [route(({ bytes }) => bytes)] });
    const response = await upload(token, everyByte);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(everyByte);
  });

  test('bytes in a full response keep their status and content type', async () => {
    const headers = { 'content-type': 'image/png' };
    const token = await start({ routes: [route(({ bytes }) => ({ status: 201, headers, body: bytes }))] });
    const response = await upload(token, everyByte);
    expect([response.status, response.headers.get('content-type')]).toEqual([201, 'image/png']);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(everyByte);
  });

  test('a handler parses a multipart upload', async () => {
    const handler = async ({ formData }: ApiRequest) => {
      const form = await formData();
      const file = form.get('file');
      const bytes = file instanceof Blob ? [...new Uint8Array(await file.arrayBuffer())] : [];
      return { name: form.get('name'), bytes };
    };
    const token = await start({ routes: [route(handler)] });
    const form = new FormData();
    form.set('name', 'Grüße');
    form.set('file', new File([everyByte], 'all.bin'));
    expect(await (await upload(token, form)).json()).toEqual({ name: 'Grüße', bytes: [...everyByte] });
  });
});

describe('recorded bodies', () => {
  test.each<[Content, string, unknown]>([
    ['{"a":1}', 'application/json', { a: 1 }],
    ['{"a":', 'application/json', '{"a":'],
    ['{"a":1}', 'application/problem+json', { a: 1 }],
    ['a=b', 'application/x-www-form-urlencoded', 'a=b'],
    ['Grüße', 'text/plain; charset=utf-8', 'Grüße'],
    ['Grüße', 'application/octet-stream', Buffer.from('Grüße')],
    [everyByte, 'text/plain', Buffer.from(everyByte)],
    [everyByte, 'image/png', Buffer.from(everyByte)],
    [everyByte, 'multipart/form-data; boundary=x', Buffer.from(everyByte)],
    ['text\0', '', Buffer.from('text\0')],
  ])('%j of type %j is %j', async (content, type, recorded) => {
    const token = await start({ routes: [route(() => undefined)] });
    await upload(token, content, { 'content-type': type });
    expect(service.requests.at(-1)?.body).toEqual(recorded);
  });

  test('keepBodyBytes drops the oldest bodies and keeps their requests', async () => {
    const token = await start({ keepBodyBytes: 3000, routes: [route(() => undefined)] });
    service.requests.length = 0;
    for (const letter of 'abcde') await upload(token, letter.repeat(1000));
    const first = service.requests.map(({ body }) => (typeof body === 'string' ? body[0] : undefined));
    expect(first).toEqual([undefined, undefined, 'c', 'd', 'e']);
    service.requests.length = 0;
    for (const letter of 'fg') await upload(token, letter.repeat(1400));
    expect(service.requests.every(({ body }) => typeof body === 'string')).toBe(true);
  });
});

describe('bodyLimit', () => {
  test('a body of the limit is accepted, and a larger one is refused with 413 in the shape of the API', async () => {
    const token = await start({ bodyLimit: 2000, routes: [route(({ bytes }) => ({ length: bytes.length }))] });
    expect(await (await upload(token, 'a'.repeat(2000))).json()).toEqual({ length: 2000 });
    const refused = await upload(token, 'a'.repeat(2001));
    expect(refused.status).toBe(413);
    expect(await refused.json()).toEqual({ error: { message: 'The body is larger than 2000 bytes.', code: 413 } });
    expect(service.requests.at(-1)?.body).toBeUndefined();
  });

  test('it can be raised for large uploads', async () => {
    const token = await start({ bodyLimit: 2 ** 23, routes: [route(({ bytes }) => ({ length: bytes.length }))] });
    expect(await (await upload(token, new Uint8Array(5_000_000))).json()).toEqual({ length: 5_000_000 });
  });
});

test('a form with many fields of one name is parsed in one pass', async () => {
  await start();
  const form = 'a&'.repeat(400_000);
  expect((await post('/oauth/authorize', form, 'application/x-www-form-urlencoded')).status).toBe(400);
});
