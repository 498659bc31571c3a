import { Cluster, Redis } from 'ioredis';
import { Strategy, type TokenStore } from 'passport-oauth-app';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { type RedisClientLike, redisTokenStore } from 'passport-oauth-app/redis';
import pg from 'pg';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, type RedisServer, startRedis } from '../support/redis-server.js';
import {
  type RedisTopology,
  SENTINEL_NAME,
  startRedisCluster,
  startRedisSentinel,
} from '../support/redis-topologies.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const ignore = () => undefined;

/** What a test of one store needs to know of its server. */
interface Server {
  /** How many connections there are that hear of changes, or all. */
  count(which: 'listening' | 'all'): Promise<number>;
  /** Breaks those that hear of changes. */
  cut(): Promise<unknown>;
}

/** Hears of changes, also after the connection for that has broken, and leaves none behind. */
async function expectWatching(watched: Pick<TokenStore, 'watch'>, other: TokenStore, server: Server): Promise<void> {
  const before = await server.count('all');
  const told: [id: string, version?: number | undefined][] = [];
  const stop = watched.watch?.((...change) => told.push(change)) ?? ignore;
  onTestFinished(stop);
  await until(() => expect(told.map(([id]) => id)).toEqual(['']));
  expect(await server.count('listening')).toBe(1);
  await other.set('id', grant);
  await until(() => expect(told.at(-1)).toEqual(['id', 1]));
  await server.cut();
  await until(() => expect(told.at(-1)?.[0]).toBe(''));
  await other.delete('id');
  await until(() => expect(told.at(-1)?.[0]).toBe('id'));
  stop();
  // Stopped while it opens.
  watched.watch?.(ignore)();
  await until(async () => expect(await server.count('listening')).toBe(0));
  await until(async () => expect(await server.count('all')).toBeLessThanOrEqual(before));
  await expectOneConnection(other, server);
}

/** Lets 50 strategies over one store object hear of a deletion by another process, on one connection. */
async function expectOneConnection(other: TokenStore, server: Server): Promise<void> {
  const addresses = {
    authUrl: 'https://auth.example.com',
    baseUrl: 'https://api.example.com',
    callbackURL: '/callback',
  };
  const options = { ...addresses, clientID: 'client', clientSecret: 'secret', scope: 'project' };
  const elsewhere = new Strategy({ ...options, tokenStore: other, cache: false });
  const tokenStore = { ...other };
  const strategies = Array.from({ length: 50 }, () => new Strategy({ ...options, tokenStore }));
  await elsewhere.importGrant('user', { accessToken: 'token', refreshToken: 'refresh', expiresAt: Date.now() + 1e6 });
  const tokens = () => Promise.allSettled(strategies.map((each) => each.client('user').accessToken()));
  expect(new Set((await tokens()).map(({ status }) => status))).toEqual(new Set(['fulfilled']));
  await until(async () => expect(await server.count('listening')).toBe(1));
  await elsewhere.deleteGrant('user');
  await until(async () => expect(new Set((await tokens()).map(({ status }) => status))).toEqual(new Set(['rejected'])));
  await Promise.all([elsewhere, ...strategies.slice(1)].map((each) => each.close()));
  expect(await server.count('listening')).toBe(1);
  await strategies[0]?.close();
  await until(async () => expect(await server.count('listening')).toBe(0));
}

describe.skipIf(!hasRedis())('changes are told by Redis, to', threats(117), () => {
  let single: RedisServer;
  let sentinel: RedisTopology & { readonly primary: number };
  let cluster: RedisTopology;
  beforeAll(async () => {
    [single, sentinel, cluster] = [await startRedis(), await startRedisSentinel(), await startRedisCluster()];
  });
  afterAll(async () => {
    await Promise.all([single?.stop(), sentinel?.stop(), cluster?.stop()]);
  });

  const nodes = (topology: RedisTopology) => topology.ports.map((port) => ({ host: '127.0.0.1', port }));
  /** The primary and its replica, on which some clients listen. */
  const sentinelData = () => dataPorts(sentinel).slice(0, 2);
  const dataPorts = (topology: RedisTopology) => topology.nodes.map(({ port }) => port);
  /** Opens a client; the ports of the data servers, and what closes it. */
  const clients: Readonly<Record<string, () => Promise<readonly [RedisClientLike, number[], () => unknown]>>> = {
    'node-redis': async () => {
      const client = await createClient({ url: single.url }).on('error', ignore).connect();
      return [client, [single.port], () => client.destroy()];
    },
    'a pool of node-redis': async () => {
      const pool = createClientPool({ url: single.url }, { maximum: 1 }).on('error', ignore);
      await pool.connect();
      return [pool, [single.port], () => pool.destroy()];
    },
    'node-redis over Sentinels': async () => {
      const client = createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes(sentinel) }).on('error', ignore);
      await client.connect();
      return [client, sentinelData(), () => client.destroy()];
    },
    'node-redis over a Cluster': async () => {
      const client = createCluster({ rootNodes: nodes(cluster).map((socket) => ({ socket })) }).on('error', ignore);
      await client.connect();
      return [client, dataPorts(cluster), () => client.destroy()];
    },
    ioredis: async () => {
      const client = new Redis(single.url);
      return [client, [single.port], () => client.disconnect()];
    },
    'ioredis over Sentinels': async () => {
      const client = new Redis({ sentinels: nodes(sentinel), name: SENTINEL_NAME });
      return [client, sentinelData(), () => client.disconnect()];
    },
    'ioredis over a Cluster': async () => {
      const client = new Cluster(nodes(cluster));
      return [client, dataPorts(cluster), () => client.disconnect()];
    },
  };

  test.each(Object.keys(clients))('%s', async (name) => {
    const [client, ports, close] = (await clients[name]?.()) ?? [];
    if (!client || !ports || !close) throw new Error('no client');
    onTestFinished(() => void close());
    const store = redisTokenStore(client);
    // The connections of a pool or a Cluster open with their first commands.
    await store.set('first', grant);
    for await (const _ of store.list()) break;
    const onAll = (...command: string[]) => Promise.all(ports.map((port) => cluster.command(port, ...command)));
    await expectWatching(store, store, {
      count: async (which) => {
        if (which === 'listening') {
          const answers = (await onAll('PUBSUB', 'NUMSUB', 'oauth-app-grant:changed')) as [string, number][];
          return answers.reduce((sum, [, count]) => sum + count, 0);
        }
        // Sentinels have connections of their own, and the clients of a Cluster open some now and then.
        if (name.includes('Cluster')) return 0;
        const lines = (await onAll('CLIENT', 'LIST')).flatMap((list) => String(list).split('\n'));
        return lines.filter((line) => line !== '' && !line.includes('name=sentinel')).length;
      },
      cut: () => onAll('CLIENT', 'KILL', 'TYPE', 'pubsub'),
    });
  });

  test('nobody, and all writes go on, where the user may not publish', async () => {
    const admin = await createClient({ url: single.url }).connect();
    await admin.sendCommand(['ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '+@all', '-publish', 'resetchannels']);
    const client = await createClient({ url: single.url.replace('//', '//app:pw@') })
      .on('error', ignore)
      .connect();
    onTestFinished(() => {
      for (const each of [admin, client]) each.destroy();
    });
    const store = redisTokenStore(client);
    await store.set('quiet', grant);
    expect(await store.update('quiet', grant, 1)).toBe(true);
    await store.delete('quiet', 1);
    expect(await store.get('quiet')).toBeUndefined();
  });
});

test.skipIf(!hasPostgres())('changes are told by PostgreSQL, on a connection beside the pool', async () => {
  const server = await startPostgres();
  const connect = (max: number) => new pg.Pool({ connectionString: server.connectionString, max }).on('error', ignore);
  // One connection for everything: to hear of changes takes none of it.
  const [pool, admin] = [connect(1), connect(2)];
  onTestFinished(async () => {
    await Promise.all([pool.end(), admin.end()]);
    await server.stop();
  });
  const store = postgresTokenStore(pool, { table: 'Told' });
  await store.set('first', grant);
  const where = `FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  const listening = `query LIKE 'LISTEN%'`;
  await expectWatching(store, store, {
    count: async (which) => {
      const { rows } = await admin.query(`SELECT count(*)::int AS n ${where} AND (${listening} OR ${which === 'all'})`);
      return rows[0].n;
    },
    cut: () => admin.query(`SELECT pg_terminate_backend(pid) ${where} AND ${listening}`),
  });
  expect(postgresTokenStore({ query: (text, values) => pool.query(text, values) }).watch).toBeUndefined();
});
