import { channel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { Agent, FormData as UndiciFormData } from 'undici';
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';
import type { ApiError } from '../../src/api/api-error.js';
import { NotAuthorizedError } from '../../src/errors.js';
import { HttpClient } from '../../src/http/http-client.js';
import { fastForward } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import { createFixture, credentialOf, MemorySource, startApiForEachTest, tokenOf } from './fixture.js';

const api = startApiForEachTest();

const lastRequest = () => api.server.requests.at(-1);
/** Whether the time of a limit passes: not before the service has the request. */
const isReceived = () => api.server.requests.length > 0;
const targets = () => api.server.requests.map(({ method, target }) => `${method} ${target}`);
const failure = async (promise: Promise<unknown>): Promise<ApiError> =>
  promise.then(
    () => expect.fail('it should have failed'),
    (error) => error,
  );

describe('a call', () => {
  test('carries the token, and gives the parsed body', async () => {
    api.server.next(faulty.json({ data: [1] }));
    const projects = await api.fixture.client.projects<{ data: number[] }>({ limit: 5, offset: 10 });
    expectTypeOf(projects).toEqualTypeOf<{ data: number[] }>();
    expect(projects).toEqual({ data: [1] });
    expect(lastRequest()).toMatchObject({
      method: 'GET',
      target: '/api/v2/projects?limit=5&offset=10',
      headers: { authorization: `Bearer ${tokenOf('first')}`, accept: 'application/json' },
    });
  });

  test.each(['post', 'put', 'patch'] as const)('%s sends JSON', async (method) => {
    api.server.next(faulty.json({ data: 1 }, 201));
    expect(await api.fixture.client[method]('/projects', { json: { name: 'Site' } })).toEqual({ data: 1 });
    expect(lastRequest()).toMatchObject({
      method: method.toUpperCase(),
      headers: { 'content-type': 'application/json' },
    });
    expect(lastRequest()?.body.toString()).toBe('{"name":"Site"}');
  });

  test('delete gives undefined for an empty answer', async () => {
    api.server.next(faulty.raw(faulty.head(204, {})));
    expect(await api.fixture.client.delete('/projects/7')).toBeUndefined();
  });

  test('request gives status and headers too, for any method', async () => {
    api.server.next(faulty.json({ a: 1 }, 202, { 'x-total': '7' }));
    const { status, headers, data } = await api.fixture.client.request<{ a: number }>('post', 'projects', {
      body: 'x',
    });
    expect({ status, total: headers['x-total'], data }).toEqual({ status: 202, total: '7', data: { a: 1 } });
    api.server.next(faulty.raw(faulty.head(200, { etag: '"1"' })));
    expect((await api.fixture.client.request('HEAD', '/projects')).headers.etag).toBe('"1"');
  });

  test('an answer of 304 to a conditional request is no error', async () => {
    api.server.next(faulty.raw(faulty.head(304, {})));
    const { status, data } = await api.fixture.client.request('GET', '/projects', {
      headers: { 'if-none-match': '"1"' },
    });
    expect([status, data]).toEqual([304, undefined]);
  });

  test('goes to the host of the organization that the token names', async () => {
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const enterpriseBaseUrl = `http://{domain}.api.localhost:${api.server.port}`;
    const { client, http } = createFixture('http://nowhere.invalid', { source, enterpriseBaseUrl });
    await client.get('/projects');
    expect(lastRequest()?.headers.host).toBe(`acme.api.localhost:${api.server.port}`);
    expect(client.baseUrl).toBe(`http://acme.api.localhost:${api.server.port}/api/v2`);
    source.current = credentialOf('ben', 'globex');
    await client.get('/projects');
    expect(lastRequest()?.headers.host).toBe(`globex.api.localhost:${api.server.port}`);
    await http.close();
  });

  test('without a grant is a NotAuthorizedError, and nothing is sent', async () => {
    api.fixture.source.current = undefined;
    expect(api.fixture.client.authorized).toBe(false);
    await expect(api.fixture.client.get('/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect(api.fixture.client.accessToken()).rejects.toBeInstanceOf(NotAuthorizedError);
    expect(api.server.requests).toEqual([]);
  });

  test('accessToken is that of the moment', async () => {
    expect(await api.fixture.client.accessToken()).toBe(tokenOf('first'));
    api.fixture.source.current = credentialOf('second');
    expect(await api.fixture.client.accessToken()).toBe(tokenOf('second'));
  });

  test('a long-lived client works across refreshes', async () => {
    for (const name of ['a', 'b', 'c']) {
      api.fixture.source.current = credentialOf(name);
      await api.fixture.client.get('/projects');
      expect(lastRequest()?.headers.authorization).toBe(`Bearer ${tokenOf(name)}`);
    }
  });
});

describe('what would lead the token elsewhere is a TypeError, and nothing is sent', {
  meta: { threats: [25, 26] },
}, () => {
  test.each(['//evil', 'https://evil', '\\\\evil', '\thttps:', '../', '%2e%2e/', '..%2f', '/a\r\nb', '/a?b', '/a#b'])(
    'path %j',
    async (path) => {
      const { client } = api.fixture;
      for (const method of ['get', 'post', 'put', 'patch', 'delete'] as const)
        await expect(client[method](path)).rejects.toThrow(TypeError);
      await expect(client.request('GET', path)).rejects.toThrow(TypeError);
      await expect(client.stream('GET', path)).rejects.toThrow(TypeError);
      expect(() => client.paginate(path)).toThrow(TypeError);
      expect(api.server.requests).toEqual([]);
    },
  );

  test.each([
    { headers: { aUTHORIZATION: 'Bearer other' } },
    { headers: { Host: 'evil' } },
    { headers: { 'x-a': 'b\r\nHost: evil' } },
    { json: {}, body: 'x' },
    { json: () => {} },
    { body: 7 },
    { timeout: 0 },
    { timeout: '5' },
    { signal: {} },
    { query: { a: {} } },
    { qurey: {} },
    null,
    'x',
  ])('options %j', async (options) => {
    // @ts-expect-error what JavaScript may give
    await expect(api.fixture.client.post('/projects', options)).rejects.toThrow(TypeError);
    expect(api.server.requests).toEqual([]);
  });

  test.each(['', 'GET /', 'CONNECT', 'TRACE', 'G\r\nT', 7])('method %j', async (method) => {
    // @ts-expect-error what JavaScript may give
    await expect(api.fixture.client.request(method, '/projects')).rejects.toThrow(TypeError);
  });

  test('a body where none may be', async () => {
    await expect(api.fixture.client.get('/projects', { json: {} })).rejects.toThrow(/query/);
  });
});

describe('a body', () => {
  test.each<[string, () => string | Uint8Array | Readable, string]>([
    ['text', () => 'text', 'text'],
    ['a Buffer', () => Buffer.from('bytes'), 'bytes'],
    ['a part of an Uint8Array', () => new Uint8Array(Buffer.from('xbytesx')).subarray(1, 6), 'bytes'],
    ['a Readable', () => Readable.from(['a', 'b']), 'ab'],
    ['nothing', () => '', ''],
  ])('may be %s', async (_name, make, sent) => {
    await api.fixture.client.post('/storages', { body: make(), headers: { 'content-type': 'text/x-own' } });
    expect(lastRequest()?.body.toString()).toBe(sent);
    expect(lastRequest()?.headers['content-type']).toBe('text/x-own');
  });

  test.each([
    ['the global FormData', () => new FormData()],
    ["undici's FormData", () => new UndiciFormData()],
  ])('may be %s', async (_name, make) => {
    const form = make();
    form.append('text', 'line 1\nline 2');
    form.append('quo"te\r\n', 'x');
    form.append('file', new File(['file bytes'], 'na"me.txt', { type: 'text/plain' }));
    form.append('blob', new Blob(['blob bytes']));
    await api.fixture.client.post('/storages', { body: form });
    const { headers, body } = lastRequest() ?? expect.fail();
    expect(headers['content-length']).toBe(String(body.length));
    const parsed = await new Response(new Uint8Array(body), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData();
    expect(parsed.get('text')).toBe('line 1\r\nline 2');
    expect([...parsed.keys()]).toHaveLength(4);
    const file = parsed.get('file') as File;
    expect([file.name, file.type, await file.text()]).toEqual(['na"me.txt', 'text/plain', 'file bytes']);
  });

  test('a form can be sent again, a stream never is', async () => {
    const form = new FormData();
    form.append('file', new Blob(['bytes']));
    api.server.next(faulty.json({}, 503));
    await api.fixture.client.put('/files/1', { body: form });
    expect(api.server.requests.map(({ body }) => body.includes('bytes'))).toEqual([true, true]);
    api.server.next(faulty.json({}, 503));
    await expect(api.fixture.client.put('/files/1', { body: Readable.from(['x']) })).rejects.toMatchObject({
      status: 503,
    });
    api.server.next(faulty.json({}, 401));
    await expect(api.fixture.client.put('/files/1', { body: Readable.from(['x']) })).rejects.toMatchObject({
      status: 401,
    });
    expect(api.server.requests).toHaveLength(4);
  });

  test('that cannot be sent again leaves a newer token to the next call', async () => {
    api.server.next(faulty.json({}, 401));
    await expect(api.fixture.client.post('/storages', { body: Readable.from(['x']) })).rejects.toMatchObject({
      status: 401,
    });
    expect(api.fixture.source.refreshes).toBe(1);
    await api.fixture.client.post('/storages', { body: Readable.from(['x']) });
    expect(api.server.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${credentialOf('first').accessToken}`,
      `Bearer ${credentialOf('refresh-1').accessToken}`,
    ]);
  });

  test('that fails while it is read fails the call with its own error', async () => {
    const own = new Error('the disk is gone');
    const body = new Readable({
      read() {
        this.destroy(own);
      },
    });
    await expect(api.fixture.client.post('/storages', { body })).rejects.toBe(own);
  });
});

describe('a stream that is to be sent', () => {
  test('and breaks while the call waits for a token fails the call, and not the process', async () => {
    const own = new Error('no such file');
    const body = new Readable({ read() {} });
    api.fixture.source.credential = async () => {
      body.destroy(own);
      await new Promise((resolve) => setImmediate(resolve));
      return credentialOf('first');
    };
    await expect(api.fixture.client.post('/storages', { body })).rejects.toBe(own);
    expect(api.server.requests).toEqual([]);
  });

  test('is destroyed if the call fails before it can be sent', async () => {
    api.fixture.source.current = undefined;
    const body = Readable.from(['x']);
    await expect(api.fixture.client.post('/storages', { body })).rejects.toBeInstanceOf(NotAuthorizedError);
    expect(body.destroyed).toBe(true);
  });
});

describe('an answer that is no success is an ApiError', () => {
  test('with all that the service said', async () => {
    api.server.next(
      faulty.json({ error: { message: 'Project Not Found', code: 404 } }, 404, { 'x-request-id': 'r-1' }),
    );
    const error = await failure(api.fixture.client.get('/projects/7', { query: { secret: 'in-query' } }));
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API', status: 404, method: 'GET', path: '/projects/7' });
    expect(error.data).toEqual({ error: { message: 'Project Not Found', code: 404 } });
    expect(error.headers['x-request-id']).toBe('r-1');
    expect(error.message).toBe(
      'GET /projects/7: status 404. Project Not Found (404). It does not exist, or not for this user and organization.',
    );
  });

  test.each([
    [400, /status 400\.$/],
    [401, /authorize the application again/],
    [403, /scopes/],
    [429, /concurrency/],
    [500, /status 500\.$/],
  ])('%i, with a hint where there is one', async (status, message) => {
    api.server.always(faulty.json({}, status));
    const source = new MemorySource();
    source.renew = (refused) => Promise.resolve(refused);
    const error = await failure(api.fixture.another(source).get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', status, message: expect.stringMatching(message) });
  });

  test('and HTML is data, on errors and on successes', async () => {
    api.server.next(faulty.html(500));
    expect((await failure(api.fixture.client.get('/projects'))).data).toMatch(/^<!doctype html>/);
    api.server.next(faulty.html());
    expect(await api.fixture.client.get('/projects')).toMatch(/^<!doctype html>/);
  });

  test('and so is invalid JSON, too large a response, and a damaged one', async () => {
    api.server.next(faulty.badJson('{"canary": '));
    const error = await failure(api.fixture.client.get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API_RESPONSE', status: 502, data: '{"canary": ' });
    expect(inspect(error)).not.toMatch(/canary/);
    const small = createFixture(api.server.origin, { maxResponseBytes: 100, http: api.fixture.http });
    api.server.next(faulty.json('x'.repeat(101)));
    expect(await failure(small.client.get('/projects'))).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502 });
    api.server.next(faulty.chainedEncodings());
    expect(await failure(small.client.get('/projects'))).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502 });
  });

  test('and shows no token that the service echoes, in any output', {
    meta: { threats: [23, 24] },
  }, async () => {
    const token = tokenOf('first');
    api.server.next((socket, received) =>
      faulty.json({ error: { message: `bad: ${received.headers.authorization}`, code: 400 } }, 400, {
        'x-echo': token,
        'set-cookie': token,
      })(socket, received),
    );
    const error = await failure(api.fixture.client.get('/projects'));
    const shown = [
      error.message,
      error.stack,
      String(error),
      inspect(error, { depth: 9 }),
      JSON.stringify(error),
    ].join();
    for (const part of [token, ...token.split('.')]) expect(shown).not.toContain(part);
    expect(JSON.stringify(error.data)).toContain(token);
  });
});

test('neither inspection nor JSON shows more of a client than may be logged', { meta: { threats: [23] } }, () => {
  const { client } = api.fixture;
  const plain = {
    authorized: true,
    grantId: 'grant-1',
    organizationDomain: undefined,
    baseUrl: `${api.server.origin}/api/v2`,
  };
  expect(JSON.parse(JSON.stringify(client))).toEqual({
    authorized: true,
    grantId: 'grant-1',
    baseUrl: `${api.server.origin}/api/v2`,
  });
  expect(inspect(client, { depth: 9, showHidden: true })).toBe(`ApiClient ${inspect(plain)}`);
  expect(inspect({ client }, { depth: 9 })).not.toMatch(/eyJ|CANARY/);
});

describe('a token that the API refuses', () => {
  const refuse =
    (name: string): faulty.Behaviour =>
    (socket, received) =>
      received.headers.authorization === `Bearer ${tokenOf(name)}`
        ? faulty.json({}, 401)(socket, received)
        : faulty.json({ ok: true })(socket, received);

  test('is renewed, and the call is tried once more, POST too', async () => {
    api.server.always(refuse('first'));
    expect(await api.fixture.client.post('/projects', { json: {} })).toEqual({ ok: true });
    expect(targets()).toEqual(['POST /api/v2/projects', 'POST /api/v2/projects']);
    expect(api.fixture.source).toMatchObject({ refreshes: 1, settledWith: [true] });
  });

  test('is not tried a third time', async () => {
    api.server.always(faulty.json({}, 401));
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 401 });
    expect(api.server.requests).toHaveLength(2);
    expect(api.fixture.source.settledWith).toEqual([false]);
  });

  test('is an ApiError at once where there is no newer one', async () => {
    api.server.always(faulty.json({}, 401));
    api.fixture.source.renew = (refused) => Promise.resolve(refused);
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 401 });
    expect(api.server.requests).toHaveLength(1);
    expect(api.fixture.source.settledWith).toEqual([]);
  });

  test('and whose grant is gone makes a NotAuthorizedError', async () => {
    api.server.always(faulty.json({}, 401));
    api.fixture.source.renew = () => Promise.reject(new NotAuthorizedError('Revoked.'));
    await expect(api.fixture.client.get('/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect(api.fixture.client.stream('GET', '/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect.poll(() => api.fixture.http.pending).toBe(0);
  });

  test('500 parallel refusals make one refresh, one more try each, and no failure', {
    meta: { threats: [51] },
  }, async () => {
    api.server.always(refuse('first'));
    const answers = await Promise.all(
      Array.from({ length: 500 }, () => api.fixture.client.get<{ ok: boolean }>('/projects')),
    );
    expect(answers.every(({ ok }) => ok)).toBe(true);
    expect(api.fixture.source.refreshes).toBe(1);
    expect(api.server.requests).toHaveLength(1000);
  });

  test('403 and 429 make no refresh', { meta: { threats: [51] } }, async () => {
    api.server.next(faulty.json({}, 403));
    api.server.always(faulty.json({}, 429));
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ status: 403 });
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ status: 429 });
    expect(api.fixture.source.refreshes).toBe(0);
  });
});

describe('a failed try', () => {
  test.each([429, 502, 503, 504])('%i is followed by others, with growing waits', async (status) => {
    api.server.next(faulty.json({}, status), 2);
    api.server.next(faulty.json({ ok: true }));
    expect(await api.fixture.client.get('/projects')).toEqual({ ok: true });
    expect(api.fixture.waits).toEqual([250, 500]);
  });

  test('is the last one after three', async () => {
    api.server.always(faulty.json({}, 503));
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 503 });
    expect(api.server.requests).toHaveLength(3);
  });

  test.each([
    ['2', 2_250],
    [new Date(Date.UTC(2030, 0, 1, 0, 0, 3)).toUTCString(), 3_250],
    ['soon', 250],
  ])('heeds Retry-After: %s', { meta: { threats: [39] } }, async (value, waited) => {
    const { client, waits, http } = createFixture(api.server.origin, { now: () => Date.UTC(2030, 0, 1) });
    api.server.next(faulty.json({}, 429, { 'retry-after': value }));
    await client.get('/projects');
    expect(waits).toEqual([waited]);
    await http.close();
  });

  test('does not wait for a Retry-After of a year, but tells it', { meta: { threats: [39] } }, async () => {
    api.server.next(faulty.json({}, 503, { 'retry-after': '31536000' }));
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ status: 503, retryAfter: 31_536_000 });
    expect(api.fixture.waits).toEqual([]);
  });

  test('of GET whose connection broke is followed by another', async () => {
    api.server.next(faulty.reset());
    api.server.next(faulty.truncated());
    expect(await api.fixture.client.get('/projects')).toEqual({});
    expect(api.server.requests).toHaveLength(3);
  });

  test('of POST that left is the only one', { meta: { threats: [38] } }, async () => {
    for (const behaviour of [faulty.reset(), faulty.truncated()]) {
      api.server.next(behaviour);
      const error = await failure(api.fixture.client.post('/projects', { json: {} }));
      expect(error).toMatchObject({
        name: 'ServiceUnavailableError',
        status: 503,
        cause: { kind: 'reset', sent: true },
      });
    }
    api.server.next(faulty.json({}, 503));
    await expect(api.fixture.client.post('/projects', { json: {} })).rejects.toMatchObject({
      name: 'ApiError',
      status: 503,
    });
    expect(api.server.requests).toHaveLength(3);
  });

  test('of POST that never left is followed by others', { meta: { threats: [36] } }, async () => {
    const refused = createFixture(await faulty.refusingOrigin());
    const error = await failure(refused.client.post('/projects', { json: {} }));
    expect(error).toMatchObject({ name: 'ServiceUnavailableError', code: 'ERR_SERVICE_UNAVAILABLE', status: 503 });
    expect(refused.waits).toHaveLength(2);
    await refused.http.close();
  });

  test('that takes too long is the only one', { meta: { threats: [37] } }, async () => {
    api.server.always(faulty.drip(5));
    await expect(fastForward(() => api.fixture.client.get('/projects'), isReceived)).rejects.toMatchObject({
      name: 'ServiceUnavailableError',
      code: 'ERR_SERVICE_TIMEOUT',
      status: 503,
    });
    expect(api.server.requests).toHaveLength(1);
  });

  test('no error of any fault shows the token', { meta: { threats: [24] } }, async () => {
    const echo: faulty.Behaviour = (socket, { headers }) =>
      socket.end(`HTTP/1.1 200 OK\r\nx: ${headers.authorization}\r\nbroken header ${headers.authorization}\r\n\r\n`);
    const faults = [faulty.reset(), faulty.hang(), faulty.truncated(), faulty.badJson(tokenOf('first')), echo];
    for (const behaviour of faults) api.server.next(behaviour);
    const post = () => failure(api.fixture.client.post('/projects', { json: {} }));
    // The second one, which hangs, takes its time.
    const errors = await fastForward(
      async () => [await post(), await post(), await post(), await post(), await post()],
      () => api.server.requests.length === 2,
    );
    for (const error of errors) {
      expect(inspect(error, { depth: 9, showHidden: false })).not.toMatch(/eyJ|CANARY/);
      expect(JSON.stringify(error)).not.toMatch(/eyJ|CANARY/);
    }
  });
});

describe('a redirect', { meta: { threats: [26] } }, () => {
  test('on the same origin below /api/v2 is followed, for GET and HEAD', async () => {
    api.server.next(faulty.answer(302, { location: '/api/v2/elsewhere?a=1' }));
    api.server.next(faulty.answer(307, { location: 'third' }));
    expect(await api.fixture.client.get('/projects', { query: { limit: 1 } })).toEqual({});
    expect(targets()).toEqual(['GET /api/v2/projects?limit=1', 'GET /api/v2/elsewhere?a=1', 'GET /api/v2/third']);
  });

  test('in a circle ends', async () => {
    api.server.always(faulty.answer(302, { location: '/api/v2/projects' }));
    await expect(api.fixture.client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 302 });
    expect(api.server.requests).toHaveLength(6);
  });

  test.each([
    ['another host', () => 'http://evil.example/api/v2/projects'],
    ['another name of the same host', () => `http://localhost:${api.server.port}/api/v2/projects`],
    ['another port', () => 'http://127.0.0.1:1/api/v2/projects'],
    ['another scheme', () => api.server.origin.replace('http', 'https')],
    ['a host alone', () => '//evil.example/api/v2/'],
    ['credentials in it', () => api.server.origin.replace('//', '//user:pass@')],
    ['no API', () => '/oauth/authorize'],
    ['a way out', () => '/api/v2/../../secret'],
    ['an encoded way out', () => '/api/v2/%2e%2e/%252e%252e/secret'],
    ['no URL', () => 'http://['],
  ])('to %s is not followed', async (_name, location) => {
    api.server.always(faulty.answer(302, { location: location() }));
    const error = await failure(api.fixture.client.get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', status: 302 });
    expect(error.headers.location).toBe(location());
    expect(api.server.requests).toHaveLength(1);
  });

  test('of a POST is not followed', async () => {
    api.server.always(faulty.answer(307, { location: '/api/v2/elsewhere' }));
    await expect(api.fixture.client.post('/projects', { json: {} })).rejects.toMatchObject({ status: 307 });
    expect(api.server.requests).toHaveLength(1);
  });
});

describe('a signal', () => {
  test('ends a call that waits for the service', async () => {
    api.server.next(faulty.hang());
    const controller = new AbortController();
    const aborted = expect(api.fixture.client.get('/projects', { signal: controller.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await api.server.received(1);
    controller.abort();
    await aborted;
  });

  test('gives its own reason, and an aborted one sends nothing', async () => {
    const reason = new Error('enough');
    await expect(api.fixture.client.get('/projects', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(api.fixture.client.stream('GET', '/projects', { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(api.server.requests).toEqual([]);
  });

  test('may be that of many calls at once, without a warning, and is let go of afterwards', async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => warnings.push(warning);
    process.on('warning', listener);
    const { signal } = new AbortController();
    const { client, http } = createFixture(api.server.origin, { concurrency: 20 });
    await Promise.all(Array.from({ length: 60 }, () => client.get('/projects', { signal, timeout: 5_000 })));
    await Promise.all(Array.from({ length: 60 }, () => api.fixture.client.get('/projects', { signal })));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listener);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await http.close();
  });

  test('ends a call that waits for a token', async () => {
    const controller = new AbortController();
    api.fixture.source.credential = () => new Promise(() => {});
    const aborted = expect(api.fixture.client.get('/projects', { signal: controller.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    controller.abort();
    await aborted;
  });

  test('ends a call that waits for another try', async () => {
    api.server.always(faulty.json({}, 503, { 'retry-after': '9' }));
    const { client, http } = createFixture(api.server.origin, { wait: undefined });
    const controller = new AbortController();
    const abort = () => setImmediate(() => controller.abort());
    channel('passport-oauth-app:api').subscribe(abort);
    onTestFinished(() => void channel('passport-oauth-app:api').unsubscribe(abort));
    const aborted = expect(client.get('/projects', { signal: controller.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await aborted;
    expect(api.server.requests).toHaveLength(1);
    await http.close();
  });
});

describe('a limit for the whole call', () => {
  const timeout = { name: 'ServiceUnavailableError', code: 'ERR_SERVICE_TIMEOUT', status: 503 };

  test('ends a call to a hanging service, regardless of the timeout of one request', async () => {
    api.server.always(faulty.hang());
    await expect(fastForward(() => api.fixture.client.get('/projects', { timeout: 9_000 }))).rejects.toMatchObject(
      timeout,
    );
  });

  test('holds over a token that does not come', async () => {
    api.fixture.source.credential = () => new Promise(() => {});
    await expect(fastForward(() => api.fixture.client.get('/projects', { timeout: 50 }))).rejects.toMatchObject(
      timeout,
    );
  });

  test('leaves no time for a wait that is longer', async () => {
    api.server.always(faulty.json({}, 503, { 'retry-after': '5' }));
    await expect(api.fixture.client.get('/projects', { timeout: 4_999 })).rejects.toMatchObject({
      name: 'ApiError',
      status: 503,
      retryAfter: 5,
    });
    expect(api.fixture.waits).toEqual([]);
  });

  test('may be longer than that of one request', async () => {
    api.server.next((socket, received) => setTimeout(() => faulty.json({ late: true })(socket, received), 8_000));
    const call = () => api.fixture.client.get('/projects', { timeout: 60_000 });
    expect(await fastForward(call, isReceived)).toEqual({ late: true });
  });
});

describe('a stream', () => {
  test('gives status, headers and the body as it comes', async () => {
    api.server.next(faulty.answer(200, { 'content-type': 'text/csv', 'x-a': 'b' }, 'a,b'));
    const { status, headers, body } = await api.fixture.client.stream('GET', '/export', { query: { a: 1 } });
    expect([status, headers['x-a'], await text(body)]).toEqual([200, 'b', 'a,b']);
    expect(lastRequest()).toMatchObject({
      target: '/api/v2/export?a=1',
      headers: { accept: '*/*', 'accept-encoding': 'identity' },
    });
  });

  test('renews, tries again and refuses as other calls do', async () => {
    api.server.next(faulty.json({}, 401));
    api.server.next(faulty.json({}, 503));
    api.server.next(faulty.answer(200, {}, 'body'));
    expect((await buffer((await api.fixture.client.stream('GET', '/export')).body)).toString()).toBe('body');
    expect(api.fixture.source).toMatchObject({ refreshes: 1, settledWith: [true] });
    api.server.next(faulty.json({ error: { message: 'No', code: 1 } }, 403));
    const error = await failure(api.fixture.client.stream('GET', '/export'));
    expect(error).toMatchObject({ status: 403, data: { error: { message: 'No', code: 1 } } });
    await expect.poll(() => api.fixture.http.pending).toBe(0);
  });

  test('ends its request when it is destroyed', async () => {
    api.server.next(faulty.drip(5));
    const { body } = await api.fixture.client.stream('GET', '/export');
    body.destroy();
    await expect.poll(() => api.server.open).toBe(0);
  });

  test('that breaks fails with an error of this package', async () => {
    api.server.next(faulty.truncated());
    const broken = await api.fixture.client.stream('GET', '/export');
    await expect(text(broken.body)).rejects.toMatchObject({ name: 'ServiceUnavailableError', status: 503 });
    api.server.next(faulty.drip(60_000));
    let isBegun = false;
    const slow = fastForward(
      async () => {
        const { body } = await api.fixture.client.stream('GET', '/export', { timeout: 9_000 });
        isBegun = true;
        return text(body);
      },
      () => isBegun,
    );
    await expect(slow).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT' });
    api.server.next(faulty.drip(5));
    const controller = new AbortController();
    const aborted = await api.fixture.client.stream('GET', '/export', { signal: controller.signal });
    aborted.body.once('data', () => controller.abort());
    await expect(text(aborted.body)).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('of an error that is huge is read in part only', async () => {
    const sent = { bytes: 0 };
    api.server.next((socket) => {
      socket.write(faulty.head(404, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }));
      const write = () => {
        while (!socket.destroyed && sent.bytes < 50e6) {
          sent.bytes += 65536;
          if (!socket.write(`10000\r\n${'x'.repeat(65536)}\r\n`)) return void socket.once('drain', write);
        }
      };
      write();
    });
    const error = await failure(api.fixture.client.stream('GET', '/export'));
    expect(error.data).toHaveLength(1024 * 1024);
    expect(sent.bytes).toBeLessThan(20e6);
  });
});

describe('events', () => {
  test('report each try, once it is over', async () => {
    const events: unknown[] = [];
    const listener = (event: unknown) => events.push(event);
    channel('passport-oauth-app:api').subscribe(listener);
    api.server.next(faulty.json({}, 503));
    await api.fixture.client.get('/projects', { query: { secret: 1 } });
    api.server.next(faulty.json({}, 404));
    await api.fixture.client.get('/projects/7').catch(() => {});
    channel('passport-oauth-app:api').unsubscribe(listener);
    await api.fixture.client.get('/silent');
    const common = { strategy: 'oauth-app', grantId: 'grant-1', method: 'GET', durationMs: expect.any(Number) };
    expect(events).toEqual([
      { ...common, path: '/projects', status: 503, attempts: 1, reason: 'ERR_API' },
      { ...common, path: '/projects', status: 200, attempts: 2 },
      { ...common, path: '/projects/7', status: 404, attempts: 1, reason: 'ERR_API' },
    ]);
  });
});

test("a user's dispatcher carries the calls", async () => {
  const dispatcher = new Agent();
  const { client } = createFixture(api.server.origin, { http: new HttpClient({ dispatcher }) });
  expect(await client.get('/projects')).toEqual({});
  await dispatcher.close();
});

test('an error shows nothing of a response that echoes the token, in any output', async () => {
  const { accessToken } = credentialOf('first');
  api.server.next(faulty.json({ echo: accessToken }, 400, { 'x-echo': accessToken }));
  const error = await api.fixture.client.get('/projects').catch((reason: unknown) => reason);
  expect((error as ApiError).data).toEqual({ echo: accessToken });
  const shown = [inspect(error, { showHidden: true, depth: 9 }), JSON.stringify(error), String(error)].join();
  expect(shown).not.toContain(accessToken);
});

describe('an answer at the edge of HTTP', () => {
  test('a 304 with a Content-Length is a success without a body', async () => {
    const headers = { 'if-none-match': '"1"' };
    api.server.always(faulty.raw(faulty.head(304, { 'content-length': '1000', etag: '"1"' })));
    const { status, data } = await api.fixture.client.request('GET', '/projects', { headers });
    expect([status, data]).toEqual([304, undefined]);
    expect((await api.fixture.client.fetch('/projects', { headers })).status).toBe(304);
    const { status: streamed, body } = await api.fixture.client.stream('GET', '/projects', { headers });
    expect([streamed, await text(body)]).toEqual([304, '']);
    expect(api.server.requests).toHaveLength(3);
  });

  test.each<[string, string, faulty.Behaviour]>([
    ['a HEAD', 'HEAD', faulty.raw(faulty.head(200, { 'content-encoding': 'gzip', 'content-length': '100' }))],
    ['an empty 200', 'GET', faulty.answer(200, { 'content-encoding': 'gzip' }, '')],
    ['a 204', 'GET', faulty.raw(faulty.head(204, { 'content-encoding': 'br' }))],
  ])('the stream of %s that names an encoding is empty', async (_what, method, behaviour) => {
    api.server.next(behaviour);
    const { body } = await api.fixture.client.stream(method, '/export');
    expect(await text(body)).toBe('');
  });

  test('an unknown encoding hides no status, and its bytes can be read', async () => {
    const behaviour = (status: number) => faulty.answer(status, { 'content-encoding': 'zstd' }, 'raw bytes');
    api.server.next(behaviour(400));
    expect(await failure(api.fixture.client.get('/projects'))).toMatchObject({ code: 'ERR_API', status: 400 });
    api.server.next(behaviour(200));
    const unusable = await failure(api.fixture.client.get('/projects'));
    expect(unusable).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502, data: Buffer.from('raw bytes') });
    expect(unusable.message).toMatch(/content encoding/);
    api.server.next(behaviour(200));
    const { headers, body } = await api.fixture.client.stream('GET', '/projects');
    expect([headers['content-encoding'], await text(body)]).toEqual(['zstd', 'raw bytes']);
  });

  test('an error whose body drips ends a stream() in time', { meta: { threats: [66] } }, async () => {
    api.server.always((socket) => {
      socket.write(faulty.head(500, { 'content-length': '1000000' }));
      const timer = setInterval(() => socket.write(' '), 5);
      socket.on('close', () => clearInterval(timer));
    });
    const { client, http } = api.fixture;
    for (const options of [{}, { timeout: 4_000 }]) {
      const { length } = api.server.requests;
      const call = fastForward(
        () => client.stream('GET', '/export', options),
        () => api.server.requests.length > length,
      );
      await expect(call).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT', sent: true });
    }
    expect(http.pending).toBe(0);
  });

  test('a signed link of another host is refused with what to do', async () => {
    const error = await api.fixture.client
      .get('https://storage.example.com/file?signature=x')
      .catch((reason: Error) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(/global fetch\(url\), without the token/);
    expect(String(error)).not.toContain('signature=x');
  });
});
