import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { type MysqlPoolLike, mysqlTokenStore } from 'passport-oauth-app/mysql';
import { type PostgresPoolLike, postgresTokenStore } from 'passport-oauth-app/postgres';
import pg from 'pg';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe } from 'vitest';
import { hasMariadb, type MariadbServer, startMariadb } from '../support/mariadb-server.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { storeChecks, testEach } from '../support/store-checks.js';

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

describe.skipIf(!hasPostgres())('postgresTokenStore over', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    closing.push(() => server.stop());
  });

  /** The adapters of docs/stores.md. */
  const adapters: Record<string, (url: string) => PostgresPoolLike | Promise<PostgresPoolLike>> = {
    TypeORM: async (url) => {
      const dataSource = await new DataSource({ type: 'postgres', url }).initialize();
      closing.unshift(() => dataSource.destroy());
      return {
        query: async (text, values) => {
          const runner = dataSource.createQueryRunner();
          const { records } = await runner.query(text, values, true).finally(() => runner.release());
          return { rows: records };
        },
      };
    },
    Knex: (connection) => {
      const db = knex({ client: 'pg', connection });
      closing.unshift(() => db.destroy());
      return {
        query: async (text, values) => {
          const connected = await db.client.acquireConnection();
          return await connected.query(text, values).finally(() => db.client.releaseConnection(connected));
        },
      };
    },
    Sequelize: (url) => {
      const sequelize = new Sequelize(url, { logging: false });
      closing.unshift(() => sequelize.close());
      return {
        query: async (text, bind = []) => {
          const [rows] = await sequelize.query(text, { bind });
          return { rows: rows ?? [] };
        },
      };
    },
    Drizzle: (url) => {
      const db = drizzle(url);
      closing.unshift(() => db.$client.end());
      return db.$client;
    },
    Kysely: (connectionString) => {
      const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString }) }) });
      closing.unshift(() => db.destroy());
      return { query: (text, values) => db.executeQuery(CompiledQuery.raw(text, values)) };
    },
  };

  describe.each(Object.entries(adapters))('%s', (table, adapter) => {
    let pool: PostgresPoolLike;
    beforeAll(async () => {
      pool = await adapter(server.connectionString);
    });
    testEach(storeChecks((options) => postgresTokenStore(pool, { ...options, table })));
  });
});

describe.skipIf(!hasMariadb())('mysqlTokenStore over', () => {
  let server: MariadbServer;
  beforeAll(async () => {
    server = await startMariadb();
    closing.push(() => server.stop());
  });

  /** The adapters of docs/stores.md. */
  const adapters: Record<string, (url: string) => MysqlPoolLike | Promise<MysqlPoolLike>> = {
    TypeORM: async (url) => {
      const dataSource = await new DataSource({ type: 'mysql', url }).initialize();
      closing.unshift(() => dataSource.destroy());
      const query = async ({ sql }: { sql: string }, values: unknown[]) => [await dataSource.query(sql, values)];
      return { query, execute: query };
    },
    Knex: (connection) => {
      const db = knex({ client: 'mysql2', connection });
      closing.unshift(() => db.destroy());
      const query = async ({ sql }: { sql: string }, values: knex.Knex.RawBinding[]) => await db.raw(sql, values);
      return { query, execute: query };
    },
  };

  describe.each(Object.entries(adapters))('%s', (table, adapter) => {
    let pool: MysqlPoolLike;
    beforeAll(async () => {
      pool = await adapter(server.uri);
    });
    testEach(storeChecks((options) => mysqlTokenStore(pool, { ...options, table })));
  });
});
