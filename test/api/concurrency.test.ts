import { text } from 'node:stream/consumers';
import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { Agent, type Dispatcher } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { NotAuthorizedError } from '../../src/errors.js';
import { HttpClient } from '../../src/http/http-client.js';
import * as broken from '../support/broken-answers.js';
import { fastForward } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import { orSample } from '../support/sample.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { createFixture, credentialOf, type Fixture, MemorySource, server, startApiForEachTest } from './fixture.js';

startApiForEachTest();

const targets = () => server.requests.map(({ method, target }) => `${method} ${target}`);

describe('concurrency', () => {
  test('many calls with 20 at once: at most 20 at the service, in the order of their arrival', async () => {
    const { client, another } = createFixture(server.origin, { concurrency: 20 });
    const held: (() => void)[] = [];
    const count = orSample(1_000, 200);
    let most = 0;
    const order: number[] = [];
    server.always((socket, received) => {
      order.push(Number(received.target.split('=')[1]));
      held.push(() => faulty.json({})(socket, received));
      most = Math.max(most, held.length);
      // All 20 are kept until they are there, and a little longer, for the 21st that must not come.
      if (held.length === 20) setTimeout(() => held.splice(0).forEach((answer) => void answer()), 3);
    });
    const clients = [client, another()];
    await Promise.all(Array.from({ length: count }, (_none, n) => clients[n % 2]?.get('/projects', { query: { n } })));
    expect(most).toBe(20);
    expect(order).toHaveLength(count);
    expect(order.every((n, index) => Math.abs(n - index) <= 20)).toBe(true);
  });

  test('a call that is aborted while it waits leaves at once; another grant does not wait', async () => {
    const { client, another } = createFixture(server.origin, { concurrency: 1 });
    server.next(faulty.hang());
    const first = new AbortController();
    const running = client.get('/1', { signal: first.signal }).catch(() => 'ended');
    await server.received(1);
    const controller = new AbortController();
    const aborted = client.get('/2', { signal: controller.signal });
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    // Less than the time limit of the one that has the place.
    const late = fastForward(() => client.get('/3', { timeout: 1_000 }));
    await expect(late).rejects.toMatchObject({ code: 'ERR_CONCURRENCY', status: 503 });
    const other = new MemorySource();
    other.grantId = 'grant-2';
    await another(other).get('/other');
    const last = client.get('/4');
    first.abort();
    expect(await running).toBe('ended');
    await last;
    expect(targets()).toEqual(['GET /api/v2/1', 'GET /api/v2/other', 'GET /api/v2/4']);
  });

  test(
    'a stream keeps its slot until it is read or destroyed; failures, refused credentials too, give theirs back',
    threats(130),
    async () => {
      const { client, source } = createFixture(server.origin, { concurrency: 1 });
      server.next(broken.huge(1e6));
      const { body } = await client.stream('GET', '/download');
      const waiting = client.get('/next');
      await new Promise((resolve) => setImmediate(resolve));
      expect(server.requests).toHaveLength(1);
      // The credential is gone when its slot is there.
      const refused = expect(waiting).rejects.toBeInstanceOf(NotAuthorizedError);
      const { current } = source;
      source.current = undefined;
      await text(body);
      await refused;
      source.current = current;
      (await client.stream('GET', '/download')).body.destroy();
      server.next(faulty.reset());
      await expect(client.post('/x')).rejects.toThrow();
      await client.get('/last');
    },
  );
});

/** Returns a source of a grant of its own for one user. */
function sourceOfUser(subject: string | undefined, grantId: string, organizationDomain?: string): MemorySource {
  const source = new MemorySource({ ...credentialOf(grantId, organizationDomain), subject });
  source.grantId = grantId;
  return source;
}

describe('an account', () => {
  test('is the user in an organization: the browsers of one user share the places, others have their own', async () => {
    const { another } = createFixture(server.origin, { concurrency: 20 });
    const most = { ada: 0, ben: 0, acme: 0 };
    const held: Record<keyof typeof most, (() => void)[]> = { ada: [], ben: [], acme: [] };
    server.always((socket, received) => {
      const user = received.target.split('=')[1] as keyof typeof most;
      held[user].push(() => faulty.json({}, most[user] > 20 ? 429 : 201)(socket, received));
      most[user] = Math.max(most[user], held[user].length);
      // All 20 are kept until they are there, and a little longer, for the 21st that must not come.
      if (held[user].length === 20)
        setImmediate(() => setImmediate(() => held[user].splice(0).forEach((answer) => void answer())));
    });
    const clients = {
      ada: [another(sourceOfUser('1', 'browser-1')), another(sourceOfUser('1', 'browser-2'))],
      ben: [another(sourceOfUser('2', 'browser-3'))],
      acme: [another(sourceOfUser('1', 'browser-4', 'acme'))],
    };
    const calls = Object.entries(clients).flatMap(([user, own]) =>
      own.flatMap((client) =>
        Array.from({ length: 40 }, () => client.post('/projects', { query: { user }, json: {} })),
      ),
    );
    await Promise.all(calls);
    expect(server.requests).toHaveLength(160);
    expect(most).toEqual({ ada: 20, ben: 20, acme: 20 });
  });

  test('is the grant where the token names no user', async () => {
    const { another } = createFixture(server.origin, { concurrency: 1 });
    server.next(faulty.hang());
    const controller = new AbortController();
    const { signal } = controller;
    const held = another(sourceOfUser(undefined, 'one'))
      .get('/held', { signal })
      .catch(() => 'ended');
    await server.received(1);
    await another(sourceOfUser(undefined, 'two')).get('/free');
    controller.abort();
    expect(await held).toBe('ended');
  });
});

describe('a place is given back', threats(66), () => {
  test.each<[string, string, faulty.Behaviour]>([
    ['HEAD', 'HEAD', faulty.raw(faulty.head(200, { 'content-length': '100' }))],
    ['204', 'GET', faulty.raw(faulty.head(204, {}))],
    ['304', 'GET', faulty.raw(faulty.head(304, {}))],
    ['an empty 200', 'GET', faulty.answer(200, {}, '')],
    ['a small body that is there', 'GET', faulty.json({ a: 1 })],
  ])('for the unread stream of %s', async (_what, method, behaviour) => {
    const { client } = createFixture(server.origin, { concurrency: 1 });
    server.next(behaviour);
    const { body } = await client.stream(method, '/download');
    server.next(behaviour);
    const response = await client.fetch('/download', { method });
    expect(await client.get('/next')).toEqual({});
    body.destroy();
    await response.body?.cancel();
  });

  test('where an interceptor aborts right after the headers', async () => {
    const agent = new Agent();
    const dispatcher = agent.compose((dispatch) => (options, handler) => {
      if (options.path.endsWith('/next')) return dispatch(options, handler);
      return dispatch(options, {
        onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
        onResponseStart: (controller, status, headers, message) => {
          handler.onResponseStart?.(controller, status, headers, message);
          controller.abort(new Error('enough'));
        },
        onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
        onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
        onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
      } satisfies Dispatcher.DispatchHandler);
    });
    const { client } = createFixture(server.origin, { concurrency: 1, http: new HttpClient({ dispatcher }) });
    server.next(broken.drip(5));
    await client.stream('GET', '/download').then(
      ({ body }) => body.destroy(),
      () => {},
    );
    expect(await client.get('/next')).toEqual({});
    await agent.close();
  });

  test('an unread stream keeps its place: a call that waits is rejected in time, with the remedy, and no other with it', async () => {
    stopTime();
    const { client } = createFixture(server.origin, { concurrency: 1, timeoutMs: 5_000 });
    server.next(broken.huge(50e6));
    // Its own limit keeps the place for longer than that of a call.
    const { body } = await client.stream('GET', '/download', { timeout: 60_000 });
    const first = client.get('/first').catch((reason: unknown) => reason);
    await new Promise(setImmediate);
    vi.advanceTimersByTime(4_900);
    const second = client.get('/second');
    await new Promise(setImmediate);
    vi.advanceTimersByTime(120);
    const error = await first;
    expect(error).toMatchObject({ name: 'ServiceUnavailableError', code: 'ERR_CONCURRENCY', status: 503, sent: false });
    expect(String(error)).toMatch(/Read the bodies of streams/);
    vi.advanceTimersByTime(4_000);
    body.destroy();
    expect(await second).toEqual({});
  });

  test('a queue that moves is waited for longer than one request may take', async () => {
    const { client } = createFixture(server.origin, { concurrency: 1 });
    let serving = 0;
    server.always((socket, received) => {
      serving += 1;
      setTimeout(() => {
        serving -= 1;
        faulty.json({})(socket, received);
      }, 500);
    });
    const calls = () => Promise.all(Array.from({ length: 20 }, () => client.get('/projects')));
    expect(await fastForward(calls, () => serving > 0)).toHaveLength(20);
  });
});

describe('a refusal with 429', () => {
  /** A service that takes so many requests at once, and what came of all. */
  function limitedTo(places: number) {
    const seen = { most: 0, refused: 0, running: 0 };
    server.always((socket, received) => {
      if (seen.running >= places) {
        seen.refused++;
        return faulty.json({}, 429)(socket, received);
      }
      seen.running++;
      seen.most = Math.max(seen.most, seen.running);
      setTimeout(() => {
        seen.running--;
        faulty.json({})(socket, received);
      }, 5);
    });
    return seen;
  }

  test.for([undefined, 40])(
    'lowers what runs at once, and no call is lost, with concurrency %s',
    async (concurrency) => {
      const { client } = createFixture(server.origin, { concurrency });
      const seen = limitedTo(4);
      await Promise.all(Array.from({ length: orSample(200, 60) }, () => client.post('/x', { json: {} })));
      expect([seen.refused > 0, seen.most <= 4]).toEqual([true, true]);
    },
  );

  test.for([Infinity, 1e12])(
    'ends a call that may take %d ms, if the wait is longer than timers take',
    async (timeout) => {
      const { client } = createFixture(server.origin, {});
      server.next(faulty.json({}, 429, { 'retry-after': '31536000' }));
      server.always(faulty.json({}));
      const refused = client.get('/1', { timeout });
      await expect(refused).rejects.toMatchObject({ name: 'ApiError', status: 429, retryAfter: 31_536_000 });
      expect(targets()).toEqual(['GET /api/v2/1']);
    },
  );

  test('is named to a call that got no place in time, where no option limits the account', async () => {
    const { client } = createFixture(server.origin, {});
    server.next(faulty.json({}, 429));
    await client.get('/1');
    server.always(faulty.hang());
    const running = [client.get('/2', { timeout: 2_000 }), client.get('/3', { timeout: 2_000 })];
    for (const each of running) each.catch(() => undefined);
    await server.received(4);
    const refused = fastForward(() => client.get('/4', { timeout: 1_000 }));
    await expect(refused).rejects.toMatchObject({ code: 'ERR_CONCURRENCY', sent: false });
    await expect(refused).rejects.toThrow(
      'timed out waiting for other requests of the account: the service refuses more',
    );
  });

  test('counts once for all requests that were sent before it, and each success adds a little', async () => {
    const { client } = createFixture(server.origin, { concurrency: 16 });
    const held: (() => void)[] = [];
    let status = 429;
    server.always((socket, received) => void held.push(() => faulty.json({}, status)(socket, received)));
    const answer = async (expected: number) => {
      await expect.poll(() => held).toHaveLength(expected);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      expect(held).toHaveLength(expected);
      for (const each of held.splice(0)) each();
    };
    const calls = Promise.all(Array.from({ length: 60 }, () => client.get('/x')));
    await answer(16);
    status = 200;
    await answer(8);
    await answer(8);
    await answer(9);
    server.always(faulty.json({}));
    await calls;
  });
});

describe('over a store that several processes share', () => {
  const sharingOver = (tokenStore: TokenStore) => ({ namespace: 'oauth-app.service', store: () => tokenStore });

  test('an account asks the store once, and when it needs more; it leaves a slot to the next, and gives back at the end', async () => {
    stopTime();
    const store = new TroubledStore();
    const options = { concurrency: 20, sharing: sharingOver(store) };
    const [{ client, limiter }, next] = [createFixture(server.origin, options), createFixture(server.origin, options)];
    const calls = (count: number) => Promise.all(Array.from({ length: count }, () => client.get('/x')));
    for (let call = 0; call < 5; call++) await calls(10);
    await next.client.get('/x');
    await next.limiter.close();
    const before = ['get', 'add', 'get', 'update', 'get', 'update'];
    expect(store.calls).toEqual(before);
    for (let call = 0; call < 5; call++) await calls(40);
    const more = ['get', 'update', 'get', 'update'];
    expect(store.calls).toEqual([...before, ...more]);
    await limiter.close();
    expect(store.calls).toEqual([...before, ...more, 'get', 'delete', 'get']);
  });

  test('an account whose share is asked for keeps no other waiting, and an abort leaves the place', async () => {
    const store = new TroubledStore();
    let answer = () => {};
    store.before = () => {
      store.before = () => undefined;
      return new Promise<void>((resolve) => (answer = resolve));
    };
    const { client, another } = createFixture(server.origin, { concurrency: 1, sharing: sharingOver(store) });
    const controller = new AbortController();
    const aborted = client.get('/aborted', { signal: controller.signal });
    const timed = client.get('/timed', { timeout: 20 });
    const waiting = client.get('/waiting');
    const other = new MemorySource();
    other.grantId = 'grant-2';
    await another(other).get('/other');
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    await expect(timed).rejects.toMatchObject({ code: 'ERR_CONCURRENCY' });
    answer();
    await waiting;
    await client.get('/last');
    expect(targets()).toEqual(['/other', '/waiting', '/last'].map((path) => `GET /api/v2${path}`));
  });

  test.for([
    [1, 2],
    [2, 3],
  ] as const)(
    '%i at once, %i processes: never more at the service, and all calls are answered',
    async ([max, count]) => {
      let running = 0;
      let most = 0;
      server.always((socket, received) => {
        most = Math.max(most, ++running);
        // Longer than a place takes to come back to a process that may not have it any more.
        setTimeout(() => {
          running--;
          faulty.json({})(socket, received);
        }, 60);
      });
      const tokenStore = memoryTokenStore();
      const processes = Array.from({ length: count }, () => {
        return createFixture(server.origin, { concurrency: max, sharing: sharingOver(tokenStore) });
      });
      const twelve = ({ client }: Fixture) => Array.from({ length: 12 }, () => client.get('/x'));
      await fastForward(() => Promise.all(processes.flatMap(twelve)));
      expect([most, server.requests.length]).toEqual([max, count * 12]);
    },
  );

  test('a store that fails leaves the limit to this process', async () => {
    const store = new TroubledStore();
    store.before = () => Promise.reject(new Error('down'));
    const { client } = createFixture(server.origin, { concurrency: 2, sharing: sharingOver(store) });
    await Promise.all([1, 2, 3].map(() => client.get('/x')));
    expect(server.requests).toHaveLength(3);
  });
});
