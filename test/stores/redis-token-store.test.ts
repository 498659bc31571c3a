import { inspect } from 'node:util';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { type RedisClientLike, redisTokenStore } from 'passport-oauth-app/redis';
import { createClient, type createClientPool, type createCluster, RESP_TYPES } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { hasRedis, type RedisServer, startRedis } from '../support/redis-server.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const SECRET = 'eyJhbGciOiJkaXIifQ.secret-secret-secret';
const forever = (): Promise<never> => new Promise(() => undefined);

afterEach(() => void vi.useRealTimers());

describe.skipIf(!hasRedis())('with Redis', () => {
  let redis: RedisServer;
  const clients: { destroy(): void }[] = [];

  async function connect() {
    const client = createClient({ url: redis.url, socket: { reconnectStrategy: 20 } });
    client.on('error', () => undefined);
    await client.connect();
    clients.push(client);
    return client;
  }

  beforeAll(async () => {
    redis = await startRedis();
    clients.push(await connect());
  });
  afterAll(async () => {
    for (const client of clients) client.destroy();
    await redis.stop();
  });

  describe('passes every check', () => {
    for (const { name, run } of tokenStoreChecks(async () => redisTokenStore(await connect()))) test(name, run);
  });

  test('passes every check with a client of RESP2, and with one that gives texts as Buffers', async () => {
    const client = await connect();
    const old = createClient({ url: redis.url, RESP: 2 });
    clients.push(await old.connect());
    const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String });
    for (const each of [old, buffers]) {
      await Promise.all(tokenStoreChecks(() => redisTokenStore(each)).map(({ run }) => run()));
    }
  });

  test('lets Redis end a grant 30 days after it was last written', async () => {
    const client = await connect();
    const store = redisTokenStore(client);
    const days = async (): Promise<number> => Math.round((await client.pTTL('oauth-app-grant:ttl')) / 86_400_000);
    await store.set('ttl', grant);
    expect(await days()).toBe(30);
    await client.expire('oauth-app-grant:ttl', 60);
    await store.update('ttl', { ...grant, version: 2 }, 1);
    expect(await days()).toBe(30);
  });

  test('lets Redis end a grant after the time to live that it was told', async () => {
    const client = await connect();
    await redisTokenStore(client, { ttl: 1.5, prefix: 'short:' }).set('id', grant);
    expect(await client.pTTL('short:id')).toBeOneOf(Array.from({ length: 501 }, (_, index) => 1000 + index));
  });

  test('leaves no lock behind, and keeps nothing outside of its prefix', async () => {
    const client = await connect();
    await client.flushAll();
    const store = redisTokenStore(client, { prefix: 'mine:' });
    const seen = await store.lock('id', async () => {
      await store.set('id', grant);
      return client.keys('*');
    });
    expect(seen.sort()).toEqual(['mine:id', 'mine:lock id']);
    expect(await client.keys('*')).toEqual(['mine:id']);
  });

  test('takes a record that somebody spoilt for no grant', async () => {
    const client = await connect();
    const store = redisTokenStore(client);
    for (const text of ['', '{"version":1', 'null', '[]', '{"version":"1"}', `{"version":1e999}`]) {
      await client.set('oauth-app-grant:spoilt', text);
      expect(await store.get('spoilt')).toBeUndefined();
      expect(await store.update('spoilt', grant, 1)).toBe(false);
    }
  });

  test('gives the lock on when the lease of a holder that died is over', async () => {
    const [dying, living] = [await connect(), await connect()];
    const held = new Promise<void>((resolve) => {
      const hold = async (): Promise<void> => {
        resolve();
        await forever();
      };
      void redisTokenStore(dying, { lease: 1 }).lock('dead', hold);
    });
    await held;
    const start = performance.now();
    dying.destroy();
    await redisTokenStore(living, { lease: 1 }).lock('dead', async () => undefined);
    expect(performance.now() - start).toBeLessThan(1500);
  });

  test('refuses the late write of a holder that lost its lock, which does not free the lock of the next one', async () => {
    const [late, next] = [
      redisTokenStore(await connect(), { lease: 1 }),
      redisTokenStore(await connect(), { lease: 30 }),
    ];
    await late.set('late', grant);
    await late.lock('late', async () => {
      await next.lock('late', async () => {
        expect(await next.update('late', { ...grant, version: 2 }, 1)).toBe(true);
        expect(await late.update('late', { ...grant, version: 3 }, 1)).toBe(false);
      });
      await new Promise<void>((resolve) => {
        void next.lock('late', async () => {
          resolve();
          await forever();
        });
      });
    });
    const client = await connect();
    expect(await client.exists('oauth-app-grant:lock late')).toBe(1);
    expect(await next.get('late')).toEqual({ ...grant, version: 2 });
  });

  test('rejects at once while Redis is away, gives the result of work that runs, and goes on when it is back', async () => {
    const server = await startRedis();
    const client = createClient({ url: server.url, socket: { reconnectStrategy: 20 } }).on('error', () => undefined);
    await client.connect();
    const other = createClient({ url: server.url, socket: { reconnectStrategy: 20 } }).on('error', () => undefined);
    await other.connect();
    const [store, waiting] = [redisTokenStore(client), redisTokenStore(other)];
    await store.set('id', grant);
    let waiter: Promise<unknown> = Promise.resolve();
    const result = await store.lock('id', async () => {
      waiter = waiting.lock('id', async () => 'never').catch((error: unknown) => error);
      await waiting.get('id');
      await server.kill();
      expect(await waiter).toMatchObject({ name: 'TokenStoreError', status: 503 });
      return 'result';
    });
    expect(result).toBe('result');
    for (const call of [store.get('id'), store.set('id', grant), store.delete('id'), store.update('id', grant, 1)]) {
      await expect(call).rejects.toMatchObject({
        name: 'TokenStoreError',
        message: expect.stringMatching(/not connected/),
      });
    }
    await server.restart();
    await vi.waitUntil(() => client.isReady, { timeout: 10_000 });
    expect(await store.get('id')).toEqual(grant);
    client.destroy();
    other.destroy();
    await server.stop();
  });
});

test('gives up a command that is not answered within five seconds', async () => {
  vi.useFakeTimers();
  const reading = redisTokenStore({ eval: forever })
    .get('id')
    .catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await reading).toMatchObject({
    name: 'TokenStoreError',
    message: 'Redis did not read a grant within 5000 ms.',
  });
});

test('asks no client that is not connected', async () => {
  const client = { eval: vi.fn(), isReady: false };
  const work = vi.fn();
  await expect(redisTokenStore(client).lock('id', work)).rejects.toThrow(
    'Redis is not connected: could not lock a grant.',
  );
  expect(client.eval).not.toHaveBeenCalled();
  expect(work).not.toHaveBeenCalled();
});

test('rejects with errors that quote no secret, and shows none when it is inspected', async () => {
  const client: RedisClientLike = {
    eval: (_script, options) =>
      Promise.reject(Object.assign(new Error(`ERR unknown command, with args ${options.arguments}`), { options })),
  };
  const store = redisTokenStore(client);
  const error = await store.set('id', { ...grant, sealed: SECRET }).catch((fault: unknown) => fault);
  expect(error).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 });
  expect(inspect([error, store], { depth: 10, showHidden: true })).not.toContain('secret-secret');
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const client: RedisClientLike = { eval: forever };
  // @ts-expect-error: not a client
  expect(() => redisTokenStore({})).toThrow(
    /^client: expected a client of node-redis, got an object without the method eval/,
  );
  // @ts-expect-error: misspelt
  expect(() => redisTokenStore(client, { leese: 5 })).toThrow(/^leese: is not an option of redisTokenStore/);
  expect(() => redisTokenStore(client, { lease: 0 })).toThrow(
    /^lease: expected a number of seconds from 1 to 600, got 0/,
  );
  expect(() => redisTokenStore(client, { ttl: Number.NaN })).toThrow(/^ttl: expected a number of seconds/);
  expect(() => redisTokenStore(client, { prefix: '' })).toThrow(/^prefix: expected/);
});

test('takes clients, pools and clusters of node-redis by their types', () => {
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<RedisClientLike>();
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<RedisClientLike>();
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<RedisClientLike>();
});
