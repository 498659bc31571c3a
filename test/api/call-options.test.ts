import { channel } from 'node:diagnostics_channel';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { ApiError } from '../../src/api/api-error.js';
import { fastForward } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import {
  client,
  createFixture,
  credentialOf,
  MemorySource,
  server,
  source,
  startApiForEachTest,
  tokenOf,
  waits,
} from './fixture.js';

startApiForEachTest();

describe('the option retry', () => {
  test('false: one try, and the renewal after a 401 beside it', async () => {
    server.next(faulty.json({}, 503));
    await expect(client.get('/projects', { retry: false })).rejects.toMatchObject({ status: 503 });
    expect(server.requests).toHaveLength(1);
    server.next(faulty.json({}, 401));
    expect(await client.get('/projects', { retry: false })).toEqual({});
    expect(server.requests).toHaveLength(3);
  });

  test('limit: so many further tries, in waits that grow up to maxDelay', async () => {
    server.next(faulty.json({}, 503), 4);
    await client.get('/projects', { retry: { limit: 4, maxDelay: 600 } });
    expect(waits).toEqual([250, 500, 600, 600]);
  });

  test('maxDelay: a longer Retry-After ends the call', async () => {
    server.always(faulty.json({}, 429, { 'retry-after': '20' }));
    await expect(client.get('/a', { retry: { maxDelay: 19_000 } })).rejects.toMatchObject({ retryAfter: 20 });
    expect(server.requests).toHaveLength(1);
    await expect(client.get('/b', { retry: { maxDelay: 20_000 } })).rejects.toMatchObject({ status: 429 });
    expect(server.requests).toHaveLength(4);
  });

  test.each([
    true,
    3,
    null,
    { limit: -1 },
    { limit: 1.5 },
    { limit: '2' },
    { maxDelay: -1 },
    { maxDelay: Number.NaN },
    { limits: 2 },
  ])('%j is a TypeError', async (retry) => {
    // @ts-expect-error what JavaScript may give
    await expect(client.get('/projects', { retry })).rejects.toThrow(/retry/);
    expect(server.requests).toEqual([]);
  });
});

describe('a 429', () => {
  test('is waited for and sent again, for 30 s in all', async () => {
    server.next(faulty.json({}, 429, { 'retry-after': '11' }));
    server.next(faulty.json({}, 429), 9);
    expect(await client.post('/projects', { json: {} })).toEqual({});
    expect(waits).toEqual([11_250, 500, 1_000, ...Array.from({ length: 7 }, () => 2_000)]);
    server.always(faulty.json({}, 429));
    waits.length = 0;
    await expect(client.post('/projects', { json: {} })).rejects.toMatchObject({ status: 429, sent: true });
    const waited = waits.reduce((sum, ms) => sum + ms, 0);
    expect([waited <= 30_000, waited > 28_000]).toEqual([true, true]);
  });

  test('is the answer if its Retry-After is longer than the time that is left, or nothing may be sent again', async () => {
    server.always(faulty.json({}, 429, { 'retry-after': '31' }));
    await expect(client.get('/a')).rejects.toMatchObject({ status: 429, retryAfter: 31 });
    server.always(faulty.json({}, 429, { 'retry-after': '5' }));
    await expect(client.get('/b', { timeout: 4_000 })).rejects.toMatchObject({ status: 429 });
    await expect(client.get('/c', { retry: false })).rejects.toMatchObject({ status: 429 });
    const body = Readable.from(['x']);
    await expect(client.post('/d', { body })).rejects.toMatchObject({ status: 429 });
    expect((await client.fetch('/e', { method: 'POST', body: Readable.from(['x']) })).status).toBe(429);
    expect([server.requests.length, waits]).toEqual([5, []]);
  });
});

describe('error.sent', () => {
  test('is false where nothing was sent, and true as soon as any try of the call may have arrived', async () => {
    const refused = createFixture(faulty.REFUSING_ORIGIN);
    await expect(refused.client.post('/x', { json: {} })).rejects.toMatchObject({ sent: false });
    server.next(faulty.reset());
    await expect(client.post('/x', { json: {} })).rejects.toMatchObject({ sent: true });
    server.next((socket) => {
      socket.resetAndDestroy();
      void server.close();
    });
    const lost = await client.get('/x').catch((error: unknown) => error);
    expect(lost).toMatchObject({ name: 'ServiceUnavailableError', sent: true });
  });
});

describe('the headers of the strategy', () => {
  test('go with each request, unless the call has its own', async () => {
    const { client } = createFixture(server.origin, {
      headers: ['user-agent', 'acme-sync/1.0', 'notion-version', '2022-06-28'],
    });
    await client.get('/a');
    await (await client.stream('GET', '/b')).body.resume();
    await client.fetch('/c');
    await client.get('/d', { headers: { 'user-agent': 'own' } });
    expect(server.requests.map(({ headers }) => [headers['user-agent'], headers['notion-version']])).toEqual([
      ['acme-sync/1.0', '2022-06-28'],
      ['acme-sync/1.0', '2022-06-28'],
      ['acme-sync/1.0', '2022-06-28'],
      ['own', '2022-06-28'],
    ]);
  });
});

describe('the option schema', () => {
  const answered = { data: { id: 7, name: 'Site', createdAt: '2026-01-02' } };
  const ofZod = z.object({ data: z.object({ id: z.number(), createdAt: z.coerce.date() }) });

  test('returns the output of a schema of Zod, with its type', async () => {
    server.always(faulty.json(answered));
    const project = await client.get('/projects/7', { schema: ofZod });
    expectTypeOf(project).toEqualTypeOf<{ data: { id: number; createdAt: Date } }>();
    expect(project.data).toEqual({ id: 7, createdAt: new Date('2026-01-02') });
    const { data, status } = await client.request('GET', '/projects/7', { schema: ofZod });
    expectTypeOf(data).toEqualTypeOf<{ data: { id: number; createdAt: Date } }>();
    expect([status, data.data.id]).toEqual([200, 7]);
  });

  test.each([
    ['timeout', { code: 'ERR_SERVICE_TIMEOUT', sent: true }],
    ['signal', { name: 'AbortError' }],
  ])('does not outlast the %s of the call', async (limit, expected) => {
    server.always(faulty.json({}));
    for (const method of ['get', 'request'] as const) {
      const controller = new AbortController();
      let isAsked = false;
      const schema = z.object({}).refine(() => {
        isAsked = true;
        if (limit === 'signal') controller.abort();
        return new Promise<boolean>(() => {});
      });
      const options = { timeout: 4_000, signal: controller.signal, schema };
      const call = () => (method === 'get' ? client.get('/x', options) : client.request('GET', '/x', options));
      await expect(fastForward<unknown>(call, () => isAsked)).rejects.toMatchObject(expected);
    }
  });

  test('waits for a schema that validates asynchronously', async () => {
    server.always(faulty.json(answered));
    const schema = z.object({ data: z.object({ id: z.number().refine(async (id) => id === 7) }) });
    expect(await client.get('/projects/7', { schema })).toEqual({ data: { id: 7 } });
  });

  test('is not asked about a 304, which has no body', async () => {
    server.always(faulty.answer(304, { etag: '"1"' }));
    const headers = { 'if-none-match': '"1"' };
    const { status, data } = await client.request('GET', '/projects/7', { headers, schema: ofZod });
    expect([status, data]).toEqual([304, undefined]);
  });

  test('makes a mismatch an ApiError with the issues of Zod, which no log shows', async () => {
    server.always(faulty.json({ data: { id: tokenOf('first'), createdAt: 'x' } }));
    const error: ApiError = await client.get('/projects/7', { schema: ofZod }).then(
      () => expect.fail('it should have failed'),
      (reason) => reason,
    );
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API_RESPONSE', status: 502, path: '/projects/7' });
    expect(error.message).toContain('data.id');
    expect(error.issues?.[0]?.path?.length).toBeGreaterThan(0);
    expect(error.data).toEqual({ data: { id: tokenOf('first'), createdAt: 'x' } });
    const shown = [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), error.stack].join();
    for (const part of tokenOf('first').split('.')) expect(shown).not.toContain(part);
  });

  test('without the interface is a TypeError', async () => {
    // @ts-expect-error not a Standard Schema
    await expect(client.get('/projects', { schema: { parse: () => 1 } })).rejects.toThrow(/Standard Schema/);
  });
});

describe('credentials()', () => {
  test('belong together, also before the first call', async () => {
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const { client } = createFixture('https://api.example.com', {
      source,
      enterpriseBaseUrl: 'https://{domain}.api.example.com',
    });
    expect(await client.credentials()).toEqual({
      accessToken: tokenOf('ben'),
      baseUrl: 'https://acme.api.example.com/api/v2',
      organizationDomain: 'acme',
      scope: [],
    });
    source.current = credentialOf('ada');
    expect(await client.credentials()).toEqual({
      accessToken: tokenOf('ada'),
      baseUrl: 'https://api.example.com/api/v2',
      organizationDomain: undefined,
      scope: [],
    });
  });
});

describe('events of a call', () => {
  test('are one for each try, and one for a call that fails before any', async () => {
    const events: unknown[] = [];
    const listener = (event: unknown) => events.push(event);
    channel('passport-oauth-app:api').subscribe(listener);
    server.next(faulty.reset());
    server.next(faulty.json({}, 401));
    await client.get('/a', { query: { secret: 1 } });
    source.current = undefined;
    await client.get('/b').catch(() => {});
    channel('passport-oauth-app:api').unsubscribe(listener);
    const common = {
      strategy: 'oauth-app',
      grantId: 'grant-1',
      method: 'GET',
      durationMs: expect.any(Number),
      origin: server.origin,
    };
    expect(events).toEqual([
      { ...common, path: '/a', attempts: 1, reason: 'ERR_SERVICE_UNAVAILABLE' },
      { ...common, path: '/a', attempts: 2, status: 401, reason: 'ERR_API' },
      { ...common, path: '/a', attempts: 3, status: 200 },
      { ...common, origin: undefined, path: '/b', attempts: 0, reason: 'ERR_NOT_AUTHORIZED' },
    ]);
  });
});
