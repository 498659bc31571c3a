import { channel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { FormData as UndiciFormData } from 'undici';
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';
import type { ApiError } from '../../src/api/api-error.js';
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
  tokenOf,
  waits,
} from './fixture.js';

startApiForEachTest();

const lastRequest = () => server.requests.at(-1);
/** Whether the time of a limit passes: not before the service has the request. */
const isReceived = () => server.requests.length > 0;
const targets = () => server.requests.map(({ method, target }) => `${method} ${target}`);
const failure = async (promise: Promise<unknown>): Promise<ApiError> =>
  promise.then(
    () => expect.fail('it should have failed'),
    (error) => error,
  );

const abortError = { name: 'AbortError' };
const timeout = { name: 'ServiceUnavailableError', code: 'ERR_SERVICE_TIMEOUT', status: 503 };

describe('a call', () => {
  test('carries the token, and gives the parsed body', async () => {
    server.next(faulty.json({ data: [1] }));
    const projects = await client.projects<{ data: number[] }>({ limit: 5, offset: 10 });
    expectTypeOf(projects).toEqualTypeOf<{ data: number[] }>();
    expect(projects).toEqual({ data: [1] });
    const headers = { authorization: `Bearer ${tokenOf('first')}`, accept: 'application/json' };
    expect(lastRequest()).toMatchObject({ method: 'GET', target: '/api/v2/projects?limit=5&offset=10', headers });
  });

  test.each(['post', 'put', 'patch'] as const)('%s sends JSON', async (method) => {
    server.next(faulty.json({ data: 1 }, 201));
    expect(await client[method]('/projects', { json: { name: 'Site' } })).toEqual({ data: 1 });
    const headers = { 'content-type': 'application/json' };
    expect(lastRequest()).toMatchObject({ method: method.toUpperCase(), headers });
    expect(lastRequest()?.body.toString()).toBe('{"name":"Site"}');
  });

  test('delete gives undefined for an empty answer', async () => {
    server.next(faulty.raw(faulty.head(204, {})));
    expect(await client.delete('/projects/7')).toBeUndefined();
  });

  test('request gives status and headers too, for any method', async () => {
    server.next(faulty.json({ a: 1 }, 202, { 'x-total': '7' }));
    const { status, headers, data } = await client.request<{ a: number }>('post', 'projects', { body: 'x' });
    expect({ status, total: headers['x-total'], data }).toEqual({ status: 202, total: '7', data: { a: 1 } });
    server.next(faulty.raw(faulty.head(200, { etag: '"1"' })));
    expect((await client.request('HEAD', '/projects')).headers.etag).toBe('"1"');
  });

  test('goes to the host of the organization that the token names', async () => {
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const enterpriseBaseUrl = `http://{domain}.api.localhost:${server.port}`;
    const { client } = createFixture('http://nowhere.invalid', { source, enterpriseBaseUrl });
    await client.get('/projects');
    expect(lastRequest()?.headers.host).toBe(`acme.api.localhost:${server.port}`);
    expect(client.baseUrl).toBe(`http://acme.api.localhost:${server.port}/api/v2`);
    source.current = credentialOf('ben', 'globex');
    await client.get('/projects');
    expect(lastRequest()?.headers.host).toBe(`globex.api.localhost:${server.port}`);
  });

  test('without a grant is a NotAuthorizedError, and nothing is sent', async () => {
    source.current = undefined;
    expect(client.authorized).toBe(false);
    await expect(client.get('/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect(client.accessToken()).rejects.toBeInstanceOf(NotAuthorizedError);
    expect(server.requests).toEqual([]);
  });
});

describe('what would lead the token elsewhere is a TypeError, and nothing is sent', threats(25, 26), () => {
  test.each(['//evil', 'https://evil', '\\\\evil', '\thttps:', '../', '%2e%2e/', '..%2f', '/a\r\nb', '/a?b', '/a#b'])(
    'path %j',
    async (path) => {
      for (const method of ['get', 'post', 'put', 'patch', 'delete'] as const)
        await expect(client[method](path)).rejects.toThrow(TypeError);
      await expect(client.request('GET', path)).rejects.toThrow(TypeError);
      await expect(client.stream('GET', path)).rejects.toThrow(TypeError);
      await expect(client.paginate(path).next()).rejects.toThrow(TypeError);
      expect(server.requests).toEqual([]);
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
    await expect(client.post('/projects', options)).rejects.toThrow(TypeError);
    expect(server.requests).toEqual([]);
  });

  test.each(['', 'GET /', 'CONNECT', 'TRACE', 'G\r\nT', 7])('method %j', async (method) => {
    // @ts-expect-error what JavaScript may give
    await expect(client.request(method, '/projects')).rejects.toThrow(TypeError);
  });

  test('a body where none may be', async () => {
    await expect(client.get('/projects', { json: {} })).rejects.toThrow(/query/);
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
    await client.post('/storages', { body: make(), headers: { 'content-type': 'text/x-own' } });
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
    await client.post('/storages', { body: form });
    const { headers, body } = lastRequest() ?? expect.fail();
    expect(headers['content-length']).toBe(String(body.length));
    const type = { 'content-type': headers['content-type'] ?? '' };
    const parsed = await new Response(new Uint8Array(body), { headers: type }).formData();
    expect(parsed.get('text')).toBe('line 1\r\nline 2');
    expect([...parsed.keys()]).toHaveLength(4);
    const file = parsed.get('file') as File;
    expect([file.name, file.type, await file.text()]).toEqual(['na"me.txt', 'text/plain', 'file bytes']);
  });
});

describe('a stream that is to be sent', () => {
  test('and breaks while the call waits for a token fails the call, and not the process', async () => {
    const own = new Error('no such file');
    const body = new Readable({ read() {} });
    source.credential = async () => {
      body.destroy(own);
      await new Promise((resolve) => setImmediate(resolve));
      return credentialOf('first');
    };
    await expect(client.post('/storages', { body })).rejects.toBe(own);
    expect(server.requests).toEqual([]);
  });

  test('is destroyed if the call fails before it can be sent', async () => {
    source.current = undefined;
    const body = Readable.from(['x']);
    await expect(client.post('/storages', { body })).rejects.toBeInstanceOf(NotAuthorizedError);
    expect(body.destroyed).toBe(true);
  });
});

describe('an answer that is no success is an ApiError', () => {
  test('with all that the service said', async () => {
    server.next(faulty.json({ error: { message: 'Project Not Found', code: 404 } }, 404, { 'x-request-id': 'r-1' }));
    const error = await failure(client.get('/projects/7', { query: { secret: 'in-query' } }));
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API', status: 404, method: 'GET', path: '/projects/7' });
    expect(error.data).toEqual({ error: { message: 'Project Not Found', code: 404 } });
    expect(error.headers['x-request-id']).toBe('r-1');
    expect(error.message).toBe(
      'GET /projects/7: status 404. Project Not Found (404). It does not exist, or this user and organization cannot see it.',
    );
  });

  test.each([
    [400, /status 400\.$/],
    [401, /may lack a permission/],
    [403, /scopes/],
    [429, /concurrency/],
    [500, /status 500\.$/],
  ])('%i, with a hint where there is one', async (status, message) => {
    server.always(faulty.json({}, status));
    const source = new MemorySource();
    source.renew = (refused) => Promise.resolve(refused);
    const error = await failure(createFixture(server.origin, { source }).client.get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', status, message: expect.stringMatching(message) });
  });

  test('and HTML is data, on errors and on successes', async () => {
    server.next(broken.html(500));
    expect((await failure(client.get('/projects'))).data).toMatch(/^<!doctype html>/);
    server.next(broken.html());
    expect(await client.get('/projects')).toMatch(/^<!doctype html>/);
  });

  test('and so is invalid JSON, too large a response, and a damaged one', async () => {
    server.next(broken.badJson('{"canary": '));
    const error = await failure(client.get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API_RESPONSE', status: 502, data: '{"canary": ' });
    expect(inspect(error)).not.toMatch(/canary/);
    const small = createFixture(server.origin, { maxResponseBytes: 100, http: http });
    server.next(faulty.json('x'.repeat(101)));
    expect(await failure(small.client.get('/projects'))).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502 });
    server.next(broken.chainedEncodings());
    expect(await failure(small.client.get('/projects'))).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502 });
  });

  test('and shows no token that the service echoes, in any output', threats(23, 24), async () => {
    const token = tokenOf('first');
    server.next((socket, received) => {
      const data = { error: { message: `bad: ${received.headers.authorization}`, code: 400 } };
      faulty.json(data, 400, { 'x-echo': token, 'set-cookie': token })(socket, received);
    });
    const error = await failure(client.get('/projects'));
    const inspected = inspect(error, { depth: 9, showHidden: true });
    const shown = [error.message, error.stack, String(error), inspected, JSON.stringify(error)].join();
    for (const part of [token, ...token.split('.')]) expect(shown).not.toContain(part);
    expect(JSON.stringify(error.data)).toContain(token);
  });
});

test('neither inspection nor JSON shows more of a client than may be logged', threats(23), () => {
  const { client } = createFixture(server.origin);
  const baseUrl = `${server.origin}/api/v2`;
  const plain = { authorized: true, grantId: 'grant-1', organizationDomain: undefined, baseUrl };
  expect(JSON.parse(JSON.stringify(client))).toEqual(plain);
  expect(inspect(client, { depth: 9, showHidden: true })).toBe(`ApiClient ${inspect(plain)}`);
  expect(inspect({ client }, { depth: 9 })).not.toMatch(/eyJ|CANARY/);
});

describe('a token that the API refuses', () => {
  const refuseFirstWith =
    (status: number, challenge = 'Bearer'): faulty.Behaviour =>
    (socket, received) => {
      const isFirst = received.headers.authorization === `Bearer ${tokenOf('first')}`;
      const headers = { 'www-authenticate': challenge };
      (isFirst ? faulty.json({}, status, headers) : faulty.json({ ok: true }))(socket, received);
    };

  test.for<[number, string?]>([
    [401],
    [400, 'Bearer realm="api", error="invalid_token", error_description="expired"'],
    [403, 'Bearer error=Invalid_Token'],
  ])('by %i %s is renewed, and the call is tried once more, POST too', async ([status, challenge]) => {
    server.always(refuseFirstWith(status, challenge));
    expect(await client.post('/projects', { json: {} })).toEqual({ ok: true });
    expect(targets()).toEqual(['POST /api/v2/projects', 'POST /api/v2/projects']);
    expect([source.refreshes, source.settledWith]).toEqual([1, [true]]);
  });

  test('is not tried a third time', async () => {
    server.always(faulty.json({}, 401));
    await expect(client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 401 });
    expect(server.requests).toHaveLength(2);
    expect(source.settledWith).toEqual([false]);
  });

  test('is an ApiError at once where there is no newer one', async () => {
    server.always(faulty.json({}, 401));
    source.renew = (refused) => Promise.resolve(refused);
    await expect(client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 401 });
    expect(server.requests).toHaveLength(1);
    expect(source.settledWith).toEqual([]);
  });

  test('and whose grant is gone makes a NotAuthorizedError', async () => {
    server.always(faulty.json({}, 401));
    source.renew = () => Promise.reject(new NotAuthorizedError('Revoked.'));
    await expect(client.get('/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect(client.stream('GET', '/projects')).rejects.toBeInstanceOf(NotAuthorizedError);
    await expect.poll(() => http.pending).toBe(0);
  });
});

describe('a failed try', () => {
  test.each([429, 502, 503, 504])('%i is followed by others, with growing waits', async (status) => {
    server.next(faulty.json({}, status), 2);
    server.next(faulty.json({ ok: true }));
    expect(await client.get('/projects')).toEqual({ ok: true });
    expect(waits).toEqual([250, 500]);
  });

  test.each([
    ['2', 2_250],
    [new Date(Date.UTC(2030, 0, 1, 0, 0, 3)).toUTCString(), 3_250],
    ['soon', 250],
  ])('heeds Retry-After: %s', threats(39), async (value, waited) => {
    const { client, waits } = createFixture(server.origin, { now: () => Date.UTC(2030, 0, 1) });
    server.next(faulty.json({}, 429, { 'retry-after': value }));
    await client.get('/projects');
    expect(waits).toEqual([waited]);
  });

  test('does not wait for a Retry-After of a year, but tells it', threats(39), async () => {
    server.next(faulty.json({}, 503, { 'retry-after': '31536000' }));
    await expect(client.get('/projects')).rejects.toMatchObject({ status: 503, retryAfter: 31_536_000 });
    expect(waits).toEqual([]);
  });

  test('of POST that left is the only one', threats(38), async () => {
    for (const behaviour of [faulty.reset(), broken.truncated()]) {
      server.next(behaviour);
      const reset = { name: 'ServiceUnavailableError', status: 503, cause: { kind: 'reset', sent: true } };
      await expect(client.post('/projects', { json: {} })).rejects.toMatchObject(reset);
    }
    server.next(faulty.json({}, 503));
    await expect(client.post('/projects', { json: {} })).rejects.toMatchObject({ name: 'ApiError', status: 503 });
    expect(server.requests).toHaveLength(3);
  });

  test('of POST that never left is followed by others', threats(36), async () => {
    const refused = createFixture(faulty.REFUSING_ORIGIN);
    const error = await failure(refused.client.post('/projects', { json: {} }));
    expect(error).toMatchObject({ name: 'ServiceUnavailableError', code: 'ERR_SERVICE_UNAVAILABLE', status: 503 });
    expect(error.message).toBe('POST /projects: could not connect to 127.0.0.1:1.');
    expect(refused.waits).toHaveLength(2);
  });

  test('that takes too long is the only one', threats(37), async () => {
    server.always(broken.drip(5));
    await expect(fastForward(() => client.get('/projects'), isReceived)).rejects.toMatchObject(timeout);
    expect(server.requests).toHaveLength(1);
  });

  test('no error of any fault shows the token', threats(24), async () => {
    const echo: faulty.Behaviour = (socket, { headers }) =>
      socket.end(`HTTP/1.1 200 OK\r\nx: ${headers.authorization}\r\nbroken header ${headers.authorization}\r\n\r\n`);
    const faults = [faulty.reset(), faulty.hang(), broken.truncated(), broken.badJson(tokenOf('first')), echo];
    for (const behaviour of faults) server.next(behaviour);
    const post = () => failure(client.post('/projects', { json: {} }));
    // The second one, which hangs, takes its time.
    const errors = await fastForward(
      async () => [await post(), await post(), await post(), await post(), await post()],
      () => server.requests.length === 2,
    );
    for (const error of errors) expect(inspect(error, { depth: 9 }) + JSON.stringify(error)).not.toMatch(/eyJ|CANARY/);
  });
});

describe('a redirect', threats(26), () => {
  test('on the same origin below /api/v2 is followed, for GET and HEAD', async () => {
    server.next(faulty.answer(302, { location: '/api/v2/elsewhere?a=1' }));
    server.next(faulty.answer(307, { location: 'third' }));
    expect(await client.get('/projects', { query: { limit: 1 } })).toEqual({});
    expect(targets()).toEqual(['GET /api/v2/projects?limit=1', 'GET /api/v2/elsewhere?a=1', 'GET /api/v2/third']);
  });

  test('in a circle ends', async () => {
    server.always(faulty.answer(302, { location: '/api/v2/projects' }));
    await expect(client.get('/projects')).rejects.toMatchObject({ name: 'ApiError', status: 302 });
    expect(server.requests).toHaveLength(6);
  });

  test.each([
    ['another host', () => 'http://evil.example/api/v2/projects'],
    ['another name of the same host', () => `http://localhost:${server.port}/api/v2/projects`],
    ['another port', () => 'http://127.0.0.1:1/api/v2/projects'],
    ['another scheme', () => server.origin.replace('http', 'https')],
    ['a host alone', () => '//evil.example/api/v2/'],
    ['credentials in it', () => server.origin.replace('//', '//user:pass@')],
    ['no API', () => '/oauth/authorize'],
    ['a way out', () => '/api/v2/../../secret'],
    ['an encoded way out', () => '/api/v2/%2e%2e/%252e%252e/secret'],
    ['no URL', () => 'http://['],
  ])('to %s is not followed', async (_name, location) => {
    server.always(faulty.answer(302, { location: location() }));
    const error = await failure(client.get('/projects'));
    expect(error).toMatchObject({ name: 'ApiError', status: 302 });
    expect(error.headers.location).toBe(location());
    expect(server.requests).toHaveLength(1);
  });

  test('of a POST is not followed', async () => {
    server.always(faulty.answer(307, { location: '/api/v2/elsewhere' }));
    await expect(client.post('/projects', { json: {} })).rejects.toMatchObject({ status: 307 });
    expect(server.requests).toHaveLength(1);
  });
});

describe('a signal', () => {
  test('ends a call that waits for the service', async () => {
    server.next(faulty.hang());
    const controller = new AbortController();
    const call = client.get('/projects', { signal: controller.signal });
    await server.received(1);
    controller.abort();
    await expect(call).rejects.toMatchObject(abortError);
  });

  test('gives its own reason, and an aborted one sends nothing', async () => {
    const reason = new Error('enough');
    await expect(client.get('/projects', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(client.stream('GET', '/projects', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(server.requests).toEqual([]);
  });

  test('may be that of many calls at once, without a warning, and is let go of afterwards', async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => warnings.push(warning);
    process.on('warning', listener);
    const { signal } = new AbortController();
    const { client } = createFixture(server.origin, { concurrency: 20 });
    await Promise.all(Array.from({ length: 60 }, () => client.get('/projects', { signal, timeout: 5_000 })));
    await Promise.all(Array.from({ length: 60 }, () => client.get('/projects', { signal })));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listener);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('ends a call that waits for a token', async () => {
    const controller = new AbortController();
    source.credential = () => new Promise(() => {});
    const call = client.get('/projects', { signal: controller.signal });
    controller.abort();
    await expect(call).rejects.toMatchObject(abortError);
  });

  test('ends a call that waits for another try', async () => {
    server.always(faulty.json({}, 503, { 'retry-after': '9' }));
    const { client } = createFixture(server.origin, { wait: undefined });
    const controller = new AbortController();
    const abort = () => setImmediate(() => controller.abort());
    channel('passport-oauth-app:api').subscribe(abort);
    onTestFinished(() => void channel('passport-oauth-app:api').unsubscribe(abort));
    const { signal } = controller;
    await expect(client.get('/projects', { signal })).rejects.toMatchObject(abortError);
    expect(server.requests).toHaveLength(1);
  });
});

describe('a limit for the whole call', () => {
  test('ends a call to a hanging service, regardless of the timeout of one request', async () => {
    server.always(faulty.hang());
    await expect(fastForward(() => client.get('/projects', { timeout: 9_000 }))).rejects.toMatchObject(timeout);
  });

  test('holds over a token that does not come', async () => {
    source.credential = () => new Promise(() => {});
    await expect(fastForward(() => client.get('/projects', { timeout: 50 }))).rejects.toMatchObject(timeout);
  });

  test('leaves no time for a wait that is longer', async () => {
    server.always(faulty.json({}, 503, { 'retry-after': '5' }));
    const last = { name: 'ApiError', status: 503, retryAfter: 5 };
    await expect(client.get('/projects', { timeout: 4_999 })).rejects.toMatchObject(last);
    expect(waits).toEqual([]);
  });

  test('may be longer than that of one request', async () => {
    server.next((socket, received) => setTimeout(() => faulty.json({ late: true })(socket, received), 8_000));
    const call = () => client.get('/projects', { timeout: 60_000 });
    expect(await fastForward(call, isReceived)).toEqual({ late: true });
  });
});

describe('a stream', () => {
  test('gives status, headers and the body as it comes', async () => {
    server.next(faulty.answer(200, { 'content-type': 'text/csv', 'x-a': 'b' }, 'a,b'));
    const { status, headers, body } = await client.stream('GET', '/export', { query: { a: 1 } });
    expect([status, headers['x-a'], await text(body)]).toEqual([200, 'b', 'a,b']);
    const sent = { accept: '*/*', 'accept-encoding': 'identity' };
    expect(lastRequest()).toMatchObject({ target: '/api/v2/export?a=1', headers: sent });
  });

  test('renews, tries again and refuses as other calls do', async () => {
    const endless: faulty.Behaviour = (socket) => socket.write(faulty.head(401, { 'content-length': '9' }));
    server.next(endless);
    server.next(faulty.json({}, 503));
    server.next(faulty.answer(200, {}, 'body'));
    expect(await text((await client.stream('GET', '/export')).body)).toBe('body');
    expect([source.refreshes, source.settledWith]).toEqual([1, [true]]);
    const data = { error: { message: 'No', code: 1 } };
    server.next(faulty.json(data, 403));
    expect(await failure(client.stream('GET', '/export'))).toMatchObject({ status: 403, data });
    server.next(endless);
    source.refresh = () => Promise.reject(new NotAuthorizedError('Log in again'));
    expect(await failure(client.stream('GET', '/export'))).toBeInstanceOf(NotAuthorizedError);
    // None of the endless refusals waits for the garbage collection of its body.
    expect(http.pending).toBe(0);
  });

  test('ends its request when it is destroyed', async () => {
    server.next(broken.drip(5));
    (await client.stream('GET', '/export')).body.destroy();
    await expect.poll(() => server.open).toBe(0);
  });

  test('that breaks fails with an error of this package', async () => {
    server.next(broken.truncated());
    const cut = await client.stream('GET', '/export');
    await expect(text(cut.body)).rejects.toMatchObject({ name: 'ServiceUnavailableError', status: 503 });
    server.next(broken.drip(60_000));
    let isBegun = false;
    const slow = fastForward(
      async () => {
        const { body } = await client.stream('GET', '/export', { timeout: 9_000 });
        isBegun = true;
        return text(body);
      },
      () => isBegun,
    );
    await expect(slow).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT' });
    server.next(broken.drip(5));
    const controller = new AbortController();
    const aborted = await client.stream('GET', '/export', { signal: controller.signal });
    aborted.body.once('data', () => controller.abort());
    await expect(text(aborted.body)).rejects.toMatchObject(abortError);
  });

  test('of an error that is huge is read in part only', async () => {
    const sent = { bytes: 0 };
    server.next((socket) => {
      socket.write(faulty.head(404, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }));
      const write = () => {
        while (!socket.destroyed && sent.bytes < 50e6) {
          sent.bytes += 65536;
          if (!socket.write(`10000\r\n${'x'.repeat(65536)}\r\n`)) return void socket.once('drain', write);
        }
      };
      write();
    });
    expect((await failure(client.stream('GET', '/export'))).data).toHaveLength(1024 * 1024);
    expect(sent.bytes).toBeLessThan(20e6);
  });
});

describe('an answer at the edge of HTTP', () => {
  test('a 304 with a Content-Length is a success without a body', async () => {
    const headers = { 'if-none-match': '"1"' };
    server.always(faulty.raw(faulty.head(304, { 'content-length': '1000', etag: '"1"' })));
    const { status, data } = await client.request('GET', '/projects', { headers });
    expect([status, data]).toEqual([304, undefined]);
    expect((await client.fetch('/projects', { headers })).status).toBe(304);
    const { status: streamed, body } = await client.stream('GET', '/projects', { headers });
    expect([streamed, await text(body)]).toEqual([304, '']);
    expect(server.requests).toHaveLength(3);
  });

  test.each<[string, string, faulty.Behaviour]>([
    ['a HEAD', 'HEAD', faulty.raw(faulty.head(200, { 'content-encoding': 'gzip', 'content-length': '100' }))],
    ['an empty 200', 'GET', faulty.answer(200, { 'content-encoding': 'gzip' }, '')],
    ['a 204', 'GET', faulty.raw(faulty.head(204, { 'content-encoding': 'br' }))],
  ])('the stream of %s that names an encoding is empty', async (_what, method, behaviour) => {
    server.next(behaviour);
    expect(await text((await client.stream(method, '/export')).body)).toBe('');
  });

  test('an unknown encoding hides no status, and its bytes can be read', async () => {
    const behaviour = (status: number) => faulty.answer(status, { 'content-encoding': 'zstd' }, 'raw bytes');
    server.next(behaviour(400));
    expect(await failure(client.get('/projects'))).toMatchObject({ code: 'ERR_API', status: 400 });
    server.next(behaviour(200));
    const unusable = await failure(client.get('/projects'));
    expect(unusable).toMatchObject({ code: 'ERR_API_RESPONSE', status: 502, data: Buffer.from('raw bytes') });
    expect(unusable.message).toMatch(/content encoding/);
    server.next(behaviour(200));
    const { headers, body } = await client.stream('GET', '/projects');
    expect([headers['content-encoding'], await text(body)]).toEqual(['zstd', 'raw bytes']);
  });

  test('an error whose body drips ends a stream() in time', threats(66), async () => {
    server.always((socket) => {
      socket.write(faulty.head(500, { 'content-length': '1000000' }));
      const timer = setInterval(() => socket.write(' '), 5);
      socket.on('close', () => clearInterval(timer));
    });
    for (const options of [{}, { timeout: 4_000 }]) {
      const { length } = server.requests;
      const call = fastForward(
        () => client.stream('GET', '/export', options),
        () => server.requests.length > length,
      );
      await expect(call).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT', sent: true });
    }
    expect(http.pending).toBe(0);
  });

  test('a signed link of another host is refused with what to do', async () => {
    const error = await client.get('https://storage.example.com/file?signature=x').catch((reason: Error) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(/global fetch\(url\), without the token/);
    expect(String(error)).not.toContain('signature=x');
  });
});
