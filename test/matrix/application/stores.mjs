// Runs the conformance checks over one store in the versions that are installed here. Prints the checks that fail.
import { createRequire } from 'node:module';
import session from 'express-session';
import { sessionTokenStore } from 'passport-oauth-app';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { sqliteTokenStore } from 'passport-oauth-app/sqlite';

const require = createRequire(import.meta.url);
const { name, redis, cluster, postgres, mysql, folder } = JSON.parse(process.argv[2]);
const ignore = () => {};

const openers = {
  memorystore: () => new (require('memorystore')(session))({ checkPeriod: 86_400_000 }),
  'session-file-store': () =>
    new (require('session-file-store')(session))({ path: folder, retries: 0, reapInterval: -1, logFn: ignore }),
  'connect-redis 6': async () =>
    new (require('connect-redis-6')(session))({ client: await nodeRedis('redis-4', { legacyMode: true }) }),
  'connect-redis 7': async () => new (require('connect-redis-7').default)({ client: await nodeRedis('redis-4') }),
  'connect-redis 8': async () =>
    new (await import('connect-redis-8')).RedisStore({ client: await nodeRedis('redis-5') }),
  'connect-redis 9': async () =>
    new (await import('connect-redis-9')).RedisStore({ client: await nodeRedis('redis-6') }),
  'connect-pg-simple': () =>
    new (require('connect-pg-simple')(session))({
      conString: postgres,
      createTableIfMissing: true,
      pruneSessionInterval: false,
    }),
  'express-mysql-session': async () => {
    const store = new (require('express-mysql-session')(session))(mysqlOptions());
    await store.onReady();
    return store;
  },
  'connect-sqlite3': () => new (require('connect-sqlite3')(session))({ dir: folder, db: 'sessions' }),
  'connect-session-knex': () => {
    const { ConnectSessionKnexStore } = require('connect-session-knex');
    const knex = require('knex')({ client: 'pg', connection: postgres });
    return new ConnectSessionKnexStore({ knex, tableName: 'knex_sessions', cleanupInterval: 0 });
  },
  'connect-session-sequelize, PostgreSQL': () => sequelize(postgres),
  'connect-session-sequelize, MariaDB': () => sequelize(mysql),
};

/** Stores of the package over clients of other versions. */
const tokenStores = {
  'redis 4': async () => redisTokenStore(await nodeRedis('redis-4')),
  'redis 5': async () => redisTokenStore(await nodeRedis('redis-5')),
  'redis 4, Cluster': async () => redisTokenStore(await nodeRedisCluster('redis-4')),
  'redis 5, Cluster': async () => redisTokenStore(await nodeRedisCluster('redis-5')),
  iovalkey: () => redisTokenStore(new (require('iovalkey'))(redis)),
  'better-sqlite3': () => sqliteTokenStore(new (require('better-sqlite3'))(`${folder}/grants`)),
  'node:sqlite': () => {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    return sqliteTokenStore(new DatabaseSync(`${folder}/grants`));
  },
};

async function nodeRedis(name, options) {
  const client = require(name).createClient({ url: redis, ...options });
  await client.on('error', ignore).connect();
  return client;
}

async function nodeRedisCluster(name) {
  const client = require(name).createCluster({
    rootNodes: cluster.map((port) => ({ socket: { host: '127.0.0.1', port } })),
  });
  await client.on('error', ignore).connect();
  return client;
}

function mysqlOptions() {
  const { hostname, port, username, password, pathname } = new URL(mysql);
  const createDatabaseTable = true;
  return {
    host: hostname,
    port: Number(port),
    user: username,
    password,
    database: pathname.slice(1),
    createDatabaseTable,
  };
}

async function sequelize(url) {
  const { Sequelize } = require('sequelize');
  const Store = require('connect-session-sequelize')(session.Store);
  const store = new Store({ db: new Sequelize(url, { logging: false }), checkExpirationInterval: -1 });
  await store.sync();
  return store;
}

const open = openers[name];
const store = open ? sessionTokenStore(await open()) : await tokenStores[name]();
const failed = [];
for (const check of tokenStoreChecks(() => store)) {
  await check.run().catch((error) => failed.push(`${check.name}: ${error.message} ${error.cause?.message ?? ''}`));
}
process.stdout.write(JSON.stringify({ failed, locks: store.lock !== undefined }));
process.exit();
