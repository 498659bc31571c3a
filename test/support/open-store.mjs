// Opens the store that the processes of a test share. Runs over src/ within Vitest, and over the built package elsewhere.
import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import { memoryTokenStore } from 'passport-oauth-app';
import { mysqlTokenStore } from 'passport-oauth-app/mysql';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { sqliteTokenStore } from 'passport-oauth-app/sqlite';
import pg from 'pg';
import { createClient, createCluster, createSentinel } from 'redis';

const ignore = () => {};
const socket = { reconnectStrategy: 50 };

export async function openStore({ lease, replicas, client: kindOfClient, ...store }) {
  const options = { lease };
  const [kind] = Object.keys(store);
  const address = store[kind];
  if (kind === 'memory') return { tokenStore: memoryTokenStore(), close: () => {} };
  if (kind === 'postgres') {
    const pool = new pg.Pool({ connectionString: address }).on('error', ignore);
    return { tokenStore: postgresTokenStore(pool, options), close: () => pool.end() };
  }
  if (kind === 'mysql') {
    const pool = mysql.createPool(address);
    return { tokenStore: mysqlTokenStore(pool, options), close: () => pool.end() };
  }
  if (kind === 'sqlite') {
    const require = createRequire(import.meta.url);
    const [name, open] = ['better-sqlite3', 'node:sqlite'].flatMap((each) => load(require, each));
    const database = name === 'node:sqlite' ? new open.DatabaseSync(address) : new open(address, { timeout: 0 });
    return { tokenStore: sqliteTokenStore(database, options), close: () => database.close() };
  }
  const redisOptions = { lease, replicas };
  if (kindOfClient === 'ioredis') {
    const client = ioredisClient(kind, address).on('error', ignore);
    return { tokenStore: redisTokenStore(client, redisOptions), close: () => client.disconnect() };
  }
  const client = redisClient(kind, address).on('error', ignore);
  await client.connect();
  return { tokenStore: redisTokenStore(client, redisOptions), close: () => client.destroy() };
}

function ioredisClient(kind, address) {
  const options = { retryStrategy: () => 50, autoResendUnfulfilledCommands: false };
  if (kind === 'redis') return new Redis(address, options);
  const nodes = address.ports.map((port) => ({ host: '127.0.0.1', port }));
  const sentinel = { sentinels: nodes, sentinelRetryStrategy: () => 50, failoverDetector: true };
  if (kind === 'sentinel') return new Redis({ ...options, ...sentinel, name: address.name });
  return new Cluster(nodes, { redisOptions: options, clusterRetryStrategy: () => 50, slotsRefreshInterval: 1000 });
}

function redisClient(kind, address) {
  if (kind === 'redis') return createClient({ url: address, socket });
  const nodes = address.ports.map((port) => ({ host: '127.0.0.1', port }));
  if (kind === 'cluster')
    return createCluster({ rootNodes: nodes.map((node) => ({ socket: node })), defaults: { socket } });
  return createSentinel({ name: address.name, sentinelRootNodes: nodes, scanInterval: 500 });
}

function load(require, name) {
  try {
    return [name, require(name)];
  } catch {
    return [];
  }
}
