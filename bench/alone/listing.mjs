// Lists a million grants of each store: node --expose-gc bench/alone/listing.mjs [grants] [store]. Needs the built package, redis-server,
// PostgreSQL, MariaDB and better-sqlite3.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import pg from 'pg';
import { Strategy } from '../../dist/index.js';
import { mysqlMigration, mysqlTokenStore } from '../../dist/mysql.js';
import { postgresMigration, postgresTokenStore } from '../../dist/postgres.js';
import { redisTokenStore } from '../../dist/redis.js';
import { sqliteTokenStore } from '../../dist/sqlite.js';
import { startMariadb } from '../lib/mariadb.mjs';
import { startPostgres } from '../lib/postgres.mjs';
import { redisClient, startRedis } from '../lib/redis.mjs';

const COUNT = Number(process.argv[2] ?? 1_000_000);
const ONLY = process.argv[3];
const TABLE = 'passport_oauth_app_grants';
const options = {
  authUrl: 'https://accounts.example.com',
  baseUrl: 'https://api.example.com',
  clientID: 'bench',
  clientSecret: 'a secret of the bench',
  callbackURL: 'https://app.example.net/callback',
  scope: 'project',
};

/** The prefix of the strategy's ids, and a record, as a store gets them from an import. */
async function sample() {
  let stored;
  const tokenStore = {
    get: async () => undefined,
    set: async (...args) => {
      stored = args;
    },
    delete: async () => {},
  };
  const tokens = { accessToken: 'a'.repeat(600), refreshToken: 'r'.repeat(600), expiresAt: Date.now() + 7_200_000 };
  await new Strategy({ ...options, tokenStore }).importGrant('1', tokens);
  const [id, record] = stored;
  const [prefix, content] = [id.slice(0, -1), JSON.parse(Buffer.from(record.sealed, 'base64url'))];
  const sealed = (number) => Buffer.from(JSON.stringify({ ...content, id: prefix + number })).toString('base64url');
  return { prefix, recordOf: (number) => JSON.stringify({ ...record, sealed: sealed(number) }) };
}

const { prefix, recordOf } = await sample();

/** Returns the rows of the grants from a number on: ten thousand, as lists of ids and records. */
function rows(from) {
  const numbers = Array.from({ length: 10_000 }, (_, index) => from + index);
  return { ids: numbers.map((number) => prefix + number), records: numbers.map(recordOf) };
}

const none = { serverMs: async () => '-' };

async function redisStore() {
  const server = await startRedis();
  const client = await redisClient(server.url);
  await client.sendCommand(['CONFIG', 'SET', 'latency-tracking-info-percentiles', '100']);
  for (let from = 0; from < COUNT; from += 10_000) {
    const { ids, records } = rows(from);
    await client.mSet(ids.map((id, index) => [`oauth-app-grant:${id}`, records[index]]));
  }
  const serverMs = async () =>
    Number(/percentiles_usec_scan:p100=([\d.]+)/.exec(await client.info('latencystats'))?.[1]) / 1000;
  return {
    store: redisTokenStore(client),
    serverMs,
    close: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

async function postgresStore() {
  const server = await startPostgres();
  if (!server) return undefined;
  const pool = new pg.Pool({ connectionString: server.url }).on('error', () => {});
  await pool.query(postgresMigration());
  const insert = `INSERT INTO ${TABLE} SELECT id, 1, record, now() + interval '1 day' FROM unnest($1::text[], $2::text[]) AS row(id, record)`;
  for (let from = 0; from < COUNT; from += 10_000) {
    const { ids, records } = rows(from);
    await pool.query(insert, [ids, records]);
  }
  await pool.query(`ANALYZE ${TABLE}`);
  return {
    ...none,
    store: postgresTokenStore(pool),
    close: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

async function mariadbStore() {
  const server = await startMariadb();
  const pool = createRequire(import.meta.url)('mysql2/promise').createPool(server.url);
  await pool.query(mysqlMigration());
  const insert = `INSERT INTO ${TABLE} (id, version, record, expires_at) VALUES ?`;
  const until = new Date(Date.now() + 86_400_000);
  for (let from = 0; from < COUNT; from += 10_000) {
    const { ids, records } = rows(from);
    for (let start = 0; start < ids.length; start += 2_000) {
      const values = ids.slice(start, start + 2_000).map((id, index) => [id, 1, records[start + index], until]);
      await pool.query(insert, [values]);
    }
  }
  await pool.query(`ANALYZE TABLE ${TABLE}`);
  return {
    ...none,
    store: mysqlTokenStore(pool),
    close: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

async function sqliteStore() {
  const folder = mkdtempSync(join(tmpdir(), 'bench-listing-'));
  const Database = createRequire(import.meta.url)('better-sqlite3');
  const database = new Database(join(folder, 'grants'), { timeout: 0 });
  const store = sqliteTokenStore(database);
  await store.get('creates the table');
  const insert = database.prepare(`INSERT INTO ${TABLE} VALUES (?, 1, ?, 4102444800000)`);
  for (let from = 0; from < COUNT; from += 10_000) {
    const { ids, records } = rows(from);
    database.exec('BEGIN');
    for (const [index, id] of ids.entries()) insert.run(id, records[index]);
    database.exec('COMMIT');
  }
  return {
    ...none,
    store,
    close: async () => {
      database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Iterates to the end. Returns the number, seconds, most heap beyond the start in MB, and the longest block of the process. */
async function measure(iterable) {
  globalThis.gc?.();
  const [start, began] = [process.memoryUsage().heapUsed, performance.now()];
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let [count, most] = [0, 0];
  for await (const _ of iterable) {
    count += 1;
    if (count % 100_000 > 0) continue;
    globalThis.gc?.();
    most = Math.max(most, process.memoryUsage().heapUsed - start);
  }
  delay.disable();
  const seconds = (performance.now() - began) / 1000;
  return {
    count,
    seconds: seconds.toFixed(1),
    heapMB: Math.round(most / 2 ** 20),
    blockedMs: Math.round(delay.max / 1e6),
  };
}

const stores = { Redis: redisStore, PostgreSQL: postgresStore, MariaDB: mariadbStore, SQLite: sqliteStore };
for (const [name, open] of Object.entries(stores)) {
  if (ONLY !== undefined && name !== ONLY) continue;
  const opened = await open().catch((error) => void console.log(name, 'is left out:', error.message));
  if (!opened) continue;
  const strategy = new Strategy({ ...options, tokenStore: opened.store });
  console.log(name, 'list', { ...(await measure(opened.store.list())), serverMs: await opened.serverMs() });
  console.log(name, 'grants', await measure(strategy.grants()));
  await strategy.close();
  await opened.close();
}
