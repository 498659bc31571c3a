import { Cluster, Redis } from 'ioredis';
import type { TokenStore } from 'passport-oauth-app';
import { type RedisClientLike, redisTokenStore } from 'passport-oauth-app/redis';
import { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';
import { mayLeave } from '../support/may-leave.js';
import { connectForSuite, hasRedis, type RedisClient, type RedisServer, startRedis } from '../support/redis-server.js';
import {
  type RedisTopology,
  SENTINEL_NAME,
  startRedisCluster,
  startRedisSentinel,
} from '../support/redis-topologies.js';
import { passEveryCheck, storeChecks, testEach } from '../support/store-checks.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const forever = (): Promise<never> => new Promise(() => undefined);

describe.skipIf(!hasRedis())('with Redis', () => {
  let redis: RedisServer;
  const clients: { destroy(): void }[] = [];

  async function connect(url = redis.url) {
    const client = createClient({ url, socket: { reconnectStrategy: 20 } });
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
    testEach(storeChecks(async (options) => redisTokenStore(await connect(), options)));
  });

  test('passes every check with a client of RESP2, and with one that gives texts as Buffers', async () => {
    const client = await connect();
    const old = createClient({ url: redis.url, RESP: 2 });
    clients.push(await old.connect());
    const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String });
    await passEveryCheck(...storesOver([old, buffers]));
  });

  test('passes every check with a pool of node-redis, and with ioredis', async () => {
    const pool = createClientPool({ url: redis.url }, { minimum: 1, maximum: 3, acquireTimeout: 60_000 });
    const ioredis = new Redis(redis.url);
    await pool.connect();
    clients.push(pool, { destroy: () => ioredis.disconnect() });
    await passEveryCheck(...storesOver([pool, ioredis]));
  });

  test('waits for the first connection of an ioredis client, and rejects at once when it has lost it', async () => {
    const ioredis = new Redis(redis.url, { lazyConnect: true });
    const store = redisTokenStore(ioredis);
    await store.set('lazy', grant);
    expect(await store.get('lazy')).toEqual(grant);
    const connecting = new Redis(redis.url);
    expect(await redisTokenStore(connecting).get('lazy')).toEqual(grant);
    connecting.disconnect();
    ioredis.disconnect();
    await until(() => expect(ioredis.status).toBe('end'));
    await expect(store.get('lazy')).rejects.toThrow('Redis is not connected');
  });

  test('reads while writes are paused, as they are during a failover', async () => {
    const admin = await connect();
    const ioredis = new Redis(redis.url);
    clients.push({ destroy: () => ioredis.disconnect() });
    const stores = [redisTokenStore(await connect()), redisTokenStore(ioredis)];
    await stores[0]?.set('paused', grant);
    await admin.sendCommand(['CLIENT', 'PAUSE', '60000', 'WRITE']);
    for (const store of stores) expect(await store.get('paused')).toEqual(grant);
    await admin.sendCommand(['CLIENT', 'UNPAUSE']);
  });

  test('frees a lock whose taking took effect on a connection that broke, long before its lease ends', async () => {
    const client = await connect();
    let commands = 0;
    const broken = redisTokenStore(
      {
        isOpen: true,
        sendCommand: async (command: string[]) => {
          commands += 1;
          // The answer to the first command is lost, and the second one does not arrive.
          if (commands !== 2) await client.sendCommand(command);
          if (commands <= 2) throw new Error('Socket closed unexpectedly');
        },
      },
      { lease: 600 },
    );
    await expect(broken.lock('broken', forever)).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(await redisTokenStore(client).lock('broken', async () => 'free')).toBe('free');
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
    const now = async (): Promise<number> => {
      const [seconds, microseconds] = (await client.sendCommand(['TIME'])) as [string, string];
      return Math.floor(Number(seconds) * 1000 + Number(microseconds) / 1000);
    };
    const before = await now();
    await redisTokenStore(client, { ttl: 3600.5, prefix: 'short:' }).set('id', grant);
    const endsAt = await client.pExpireTime('short:id');
    expect(endsAt).toBeGreaterThanOrEqual(before + 3_600_500);
    expect(endsAt).toBeLessThanOrEqual((await now()) + 3_600_500);
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

  test('treats a damaged record as no grant', async () => {
    const client = await connect();
    const store = redisTokenStore(client);
    for (const text of ['', '{"version":1', 'null', '[]', '{"version":"1"}', `{"version":1e999}`]) {
      await client.set('oauth-app-grant:spoilt', text);
      expect(await store.get('spoilt')).toBeUndefined();
      expect(await store.update('spoilt', grant, 1)).toBe(false);
    }
  });

  test('waits for a lease of version 0.1, which ends with its key', async () => {
    const [client, own] = [await connect(), '{"owner":"of version 0.1"}'];
    await client.set('oauth-app-grant:lock former', own, { PX: 600_000 });
    let isLocked = false;
    const locking = redisTokenStore(client).lock('former', async () => {
      isLocked = true;
    });
    await redisTokenStore(client).get('former');
    expect([isLocked, await client.get('oauth-app-grant:lock former')]).toEqual([false, own]);
    await client.del('oauth-app-grant:lock former');
    await locking;
  });

  test('refuses the late write of a holder that lost its lock, which does not free the lock of the next one', async () => {
    mayLeave(/#tails/);
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

  test('rejects at once while Redis is down, returns the result of work that runs, and works again after its restart', async () => {
    const server = await startRedis();
    const client = await connect(server.url);
    const [store, waiting] = [redisTokenStore(client), redisTokenStore(await connect(server.url))];
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
    await until(() => expect(client.isReady).toBe(true));
    expect(await store.get('id')).toEqual(grant);
    await server.stop();
  });
});

describe.skipIf(!hasRedis())('with a Redis that evicts', threats(78), () => {
  let client: RedisClient;
  const KEYS = 300;
  connectForSuite((connected) => {
    client = connected;
  });

  /** Writes sessions of 4 KiB. Their time to live is shorter than that of grants. */
  const fill = (name: string, count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: count }, (_, index) => client.set(`${name}${index}`, 'x'.repeat(4096), { EX: 86_400 })),
    );
  const figure = async (name: string): Promise<number> =>
    Number(new RegExp(`^${name}:([0-9]+)`, 'm').exec(await client.info())?.[1]);

  /** Fills the Redis up to its limit, with sessions that nobody has used for two seconds. */
  async function fillUp(policy: string): Promise<void> {
    // So many samples that chance takes no key before an older one.
    const settings = ['maxmemory', '0', 'maxmemory-policy', policy, 'maxmemory-samples', '64'];
    await client.sendCommand(['CONFIG', 'SET', ...settings]);
    await client.flushAll();
    await client.sendCommand(['CONFIG', 'RESETSTAT']);
    await fill('old', KEYS);
    if (!policy.endsWith('lfu'))
      await until(async () => expect(await client.objectIdleTime('old0')).toBeGreaterThan(1));
    // Room for a lease, and for the buffers of Redis: nothing is evicted until it was looked at.
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory', String((await figure('used_memory')) + 2 ** 20)]);
  }

  test.each(['volatile-ttl', 'volatile-lru', 'volatile-lfu', 'allkeys-lru', 'allkeys-lfu'])(
    'keeps the lease of a process at work under %s, which takes older keys first',
    async (policy) => {
      const store: TokenStore = redisTokenStore(client);
      await fillUp(policy);
      // An id of its own: Redis keeps the names that it has sampled for an eviction, with the idle time that the policy of the test
      // before gave them.
      await store.lock?.(policy, async (lease) => {
        // As before a refresh token is sent. LFU counts the looks, from which it takes one for each minute: a value that a
        // script has written can be an object that Redis has had for minutes.
        for (let looks = 0; looks < 10; looks += 1) expect(await lease?.isHeld()).toBe(true);
        for (let times = 0; (await figure('evicted_keys')) < KEYS / 2; times += 1) await fill(`${times}-`, 20);
        expect(await lease?.isHeld()).toBe(true);
      });
    },
  );

  test.each(['volatile-random', 'allkeys-random'])(
    'sees before a token is sent that %s has taken its lease, and frees no lease of another',
    async (policy) => {
      const [store, other]: TokenStore[] = [redisTokenStore(client), redisTokenStore(client)];
      await fillUp(policy);
      await store?.lock?.('id', async (lease) => {
        const isTaken = async () => (await client.exists('oauth-app-grant:lock id')) === 0;
        for (let times = 0; times < 500 && !(await isTaken()); times += 1) await fill(`${times}-`, 20);
        expect(await isTaken()).toBe(true);
        expect(await lease?.isHeld()).toBe(false);
        await client.sendCommand(['CONFIG', 'SET', 'maxmemory', '0']);
        await other?.lock?.('id', async (others) => {
          expect(await lease?.isHeld()).toBe(false);
          expect(await others?.isHeld()).toBe(true);
        });
      });
    },
  );

  test('sees before a token is sent that its lease has ended early, since the clock of Redis was set forward', async () => {
    const [store, other]: TokenStore[] = [redisTokenStore(client), redisTokenStore(client)];
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory', '0']);
    await store?.lock?.('id', async (lease) => {
      const record = JSON.parse((await client.get('oauth-app-grant:lock id')) ?? '');
      // An hour later by the clock of Redis, which is the end's.
      await client.set('oauth-app-grant:lock id', JSON.stringify({ ...record, endsAt: record.endsAt - 3_600_000 }));
      expect(await lease?.isHeld()).toBe(false);
      expect(await other?.lock?.('id', async () => 'taken')).toBe('taken');
    });
  });

  test('sees before a token is sent that a Redis which lost its data has no lease any more', async () => {
    const store: TokenStore = redisTokenStore(client);
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory', '0']);
    await store.lock?.('id', async (lease) => {
      await client.flushAll();
      expect(await lease?.isHeld()).toBe(false);
    });
  });
});

type Options = Parameters<typeof redisTokenStore>[1];

/** What opens a store over each of the clients. */
function storesOver(clients: readonly RedisClientLike[], options: Options = {}) {
  return clients.map((client) => (lease: Options) => redisTokenStore(client, { ...lease, ...options }));
}

const hostsOf = ({ ports }: RedisTopology) => ports.map((port) => ({ host: '127.0.0.1', port }));

/** A client of each package over a Cluster, which ends with the test. */
async function clusterClients(cluster: RedisTopology, { readsFromReplicas = false } = {}) {
  const rootNodes = hostsOf(cluster).map((socket) => ({ socket }));
  const nodeRedis = createCluster({ rootNodes, useReplicas: readsFromReplicas });
  nodeRedis.on('error', () => undefined);
  onTestFinished(() => nodeRedis.destroy());
  await nodeRedis.connect();
  const ioredis = new Cluster(hostsOf(cluster), { scaleReads: readsFromReplicas ? 'slave' : 'master' });
  onTestFinished(() => ioredis.disconnect());
  await until(() => expect(ioredis.status).toBe('ready'));
  return [nodeRedis, ioredis] as const;
}

/** A client of each package over Sentinels, which ends with the test. */
async function sentinelClients(sentinel: RedisTopology) {
  const nodes = hostsOf(sentinel);
  const nodeRedis = createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes, replicaPoolSize: 1 });
  nodeRedis.on('error', () => undefined);
  onTestFinished(() => nodeRedis.destroy());
  await nodeRedis.connect();
  const ioredis = new Redis({ sentinels: nodes, name: SENTINEL_NAME });
  ioredis.on('error', () => undefined);
  onTestFinished(() => ioredis.disconnect());
  return [nodeRedis, ioredis] as const;
}

/** Gives replicas all the time that they need: the 100 ms of a write are not what these tests are about. Changes the client. */
function patient(client: RedisClientLike): RedisClientLike {
  const patiently = (args: readonly unknown[]): unknown[] =>
    args[0] === 'WAIT' ? [...args.slice(0, 2), '0'] : args.map((arg) => (Array.isArray(arg) ? patiently(arg) : arg));
  const replace = (object: object, name: string, wrap: (method: (...args: unknown[]) => object) => unknown): void => {
    const method = Reflect.get(object, name);
    if (typeof method === 'function') Reflect.set(object, name, wrap(method.bind(object)));
  };
  const sending = (object: object, names: readonly string[]): object => {
    for (const name of names)
      replace(
        object,
        name,
        (send) =>
          (...args: unknown[]) =>
            send(...patiently(args)),
      );
    return object;
  };
  sending(client, ['sendCommand', 'call']);
  for (const name of ['multi', 'pipeline'])
    replace(
      client,
      name,
      (begin) =>
        (...args: unknown[]) =>
          sending(begin(...args), ['addCommand', 'call']),
    );
  return client;
}

const confirming = { replicas: 1 };

test.skipIf(!hasRedis())(
  'passes every check over a Cluster of Redis, also where it reads from replicas, and where they confirm each write',
  async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const clients = await clusterClients(cluster);
    const readers = await clusterClients(cluster, { readsFromReplicas: true });
    const writers = await clusterClients(cluster);
    await passEveryCheck(...storesOver([...clients, ...readers]), ...storesOver(writers.map(patient), confirming));
  },
);

describe.skipIf(!hasRedis())('over Sentinels', () => {
  let sentinel: Awaited<ReturnType<typeof startRedisSentinel>>;
  beforeAll(async () => {
    sentinel = await startRedisSentinel();
  });
  afterAll(() => sentinel.stop());

  test('passes every check with each kind of client, also where a replica confirms each write', async () => {
    const url = `redis://127.0.0.1:${sentinel.primary}`;
    const single = await createClient({ url }).connect();
    const pool = createClientPool({ url });
    await pool.connect();
    onTestFinished(() => {
      for (const client of [single, pool]) client.destroy();
    });
    const writers = [single, pool, ...(await sentinelClients(sentinel))].map(patient);
    await passEveryCheck(...storesOver(await sentinelClients(sentinel)), ...storesOver(writers, confirming));
  });

  test('refuses a save that no replica has, and takes it when it is repeated and a replica has it', async () => {
    const client = await createClient({ url: `redis://127.0.0.1:${sentinel.primary}` }).connect();
    onTestFinished(() => client.destroy());
    const store = redisTokenStore(client, confirming);
    const next = { ...grant, version: 2 };
    await store.set('unconfirmed', grant);
    const replica = sentinel.nodes[1]?.process;
    replica?.kill('SIGSTOP');
    onTestFinished(() => void replica?.kill('SIGCONT'));
    await expect(store.update('unconfirmed', next, 1)).rejects.toThrow(
      'Expected 1 replicas of Redis to confirm a saved grant within 100 ms, got fewer.',
    );
    await expect(store.update('unconfirmed', next, 1)).rejects.toThrow('got fewer');
    // Another process that was faster is told at once.
    expect(await store.update('unconfirmed', { ...grant, version: 3 }, 1)).toBe(false);
    replica?.kill('SIGCONT');
    await until(async () => expect(await store.update('unconfirmed', next, 1)).toBe(true));
    expect(await store.get('unconfirmed')).toEqual(next);
  });
});

test.skipIf(!hasRedis())('uses the new primary after a failover of Sentinels', async () => {
  const sentinel = await startRedisSentinel();
  onTestFinished(() => sentinel.stop());
  const stores = (await sentinelClients(sentinel)).map((client) => redisTokenStore(client));
  await stores[0]?.set('id', grant);
  // Both are at work on the primary that ends.
  for (const store of stores) expect(await store.lock('id', () => store.get('id'))).toEqual(grant);
  await sentinel.replicated(sentinel.primary, 1);
  await sentinel.kill(sentinel.primary);
  for (const port of sentinel.ports)
    await sentinel.command(port, 'SENTINEL', 'SET', SENTINEL_NAME, 'down-after-milliseconds', '1000');
  for (const store of stores) {
    await until(async () => expect(await store.lock('id', () => store.get('id'))).toEqual(grant));
  }
});

test('asks no client that is not connected', async () => {
  const client = { isOpen: true, sendCommand: vi.fn(), isReady: false };
  const work = vi.fn();
  await expect(redisTokenStore(client).lock('id', work)).rejects.toThrow(
    'Redis is not connected: could not lock a grant.',
  );
  expect(client.sendCommand).not.toHaveBeenCalled();
  expect(work).not.toHaveBeenCalled();
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const client: RedisClientLike = { isOpen: true, sendCommand: forever };
  const callbacks = { sendCommand: () => undefined, send_command: () => undefined };
  const legacy = { isOpen: true, sendCommand: () => undefined, options: { legacyMode: true } };
  for (const wrong of [undefined, null, 'redis://localhost', {}, { query: forever }, callbacks, legacy]) {
    // @ts-expect-error: not a client
    expect(() => redisTokenStore(wrong)).toThrow(
      /^client: expected a client of node-redis 4 or later, ioredis or iovalkey/,
    );
  }
  // @ts-expect-error: misspelt
  expect(() => redisTokenStore(client, { leese: 5 })).toThrow(/^leese: is not an option of redisTokenStore/);
  expect(() => redisTokenStore(client, { lease: 0 })).toThrow(
    /^lease: expected a number of seconds from 1 to 600, got 0/,
  );
  expect(() => redisTokenStore(client, { ttl: Number.NaN })).toThrow(/^ttl: expected a number of seconds/);
  expect(() => redisTokenStore(client, { prefix: '' })).toThrow(/^prefix: expected/);
  expect(() => redisTokenStore(client, { replicas: -1 })).toThrow(/^replicas: expected an integer number of replicas/);
});

test('takes the clients of node-redis and ioredis by their types', () => {
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<RedisClientLike>();
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<RedisClientLike>();
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<RedisClientLike>();
  expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<RedisClientLike>();
  expectTypeOf<Redis>().toExtend<RedisClientLike>();
  expectTypeOf<Cluster>().toExtend<RedisClientLike>();
});
