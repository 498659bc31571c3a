// Opens the store that the processes of a test share. Runs over src/ within Vitest, and over the built package elsewhere.
import { createRequire } from 'node:module';

const ignore = () => {};
const socket = { reconnectStrategy: 50 };

/** Loads the client of that store alone: all of them take a process longer to load than everything else. */
export async function openStore({ lease, replicas, client: kindOfClient, ...store }) {
  const options = { lease };
  const [kind] = Object.keys(store);
  const address = store[kind];
  if (kind === 'memory') {
    const { memoryTokenStore } = await import('passport-oauth-app');
    return { tokenStore: memoryTokenStore(), close: () => {} };
  }
  if (kind === 'postgres') {
    const [{ default: pg }, { postgresTokenStore }] = [await import('pg'), await import('passport-oauth-app/postgres')];
    const pool = new pg.Pool({ connectionString: address }).on('error', ignore);
    return { tokenStore: postgresTokenStore(pool, options), close: () => pool.end() };
  }
  if (kind === 'mysql') {
    const [mysql, { mysqlTokenStore }] = [await import('mysql2/promise'), await import('passport-oauth-app/mysql')];
    const pool = mysql.createPool(address);
    return { tokenStore: mysqlTokenStore(pool, options), close: () => pool.end() };
  }
  if (kind === 'sqlite') {
    const { sqliteTokenStore } = await import('passport-oauth-app/sqlite');
    const require = createRequire(import.meta.url);
    const [name, open] = ['better-sqlite3', 'node:sqlite'].flatMap((each) => load(require, each));
    const database = name === 'node:sqlite' ? new open.DatabaseSync(address) : new open(address, { timeout: 0 });
    return { tokenStore: sqliteTokenStore(database, options), close: () => database.close() };
  }
  const { redisTokenStore } = await import('passport-oauth-app/redis');
  const redisOptions = { lease, replicas };
  if (kindOfClient === 'ioredis') {
    const client = ioredisClient(await import('ioredis'), kind, address).on('error', ignore);
    return { tokenStore: redisTokenStore(client, redisOptions), close: () => client.disconnect() };
  }
  const client = redisClient(await import('redis'), kind, address).on('error', ignore);
  await client.connect();
  return { tokenStore: redisTokenStore(client, redisOptions), close: () => client.destroy() };
}

function ioredisClient({ Cluster, Redis }, kind, address) {
  const options = { retryStrategy: () => 50, autoResendUnfulfilledCommands: false };
  if (kind === 'redis') return new Redis(address, options);
  const nodes = address.ports.map((port) => ({ host: '127.0.0.1', port }));
  const sentinel = { sentinels: nodes, sentinelRetryStrategy: () => 50, failoverDetector: true };
  if (kind === 'sentinel') return new Redis({ ...options, ...sentinel, name: address.name });
  return new Cluster(nodes, { redisOptions: options, clusterRetryStrategy: () => 50, slotsRefreshInterval: 1000 });
}

function redisClient({ createClient, createCluster, createSentinel }, kind, address) {
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
