import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { startPostgres } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';

const ROWS = 200_000;
const TABLE = 'passport_oauth_app_grants';

/** Grants that expire together: how long it takes until PostgreSQL has none of them, while one process writes. */
export async function sweep({ quick }) {
  const rows = [];
  const database = await startPostgres();
  if (database !== undefined) {
    const expired = quick ? ROWS / 10 : ROWS;
    const pool = new pg.Pool({ connectionString: database.url, max: 1 }).on('error', () => {});
    const seconds = await onStage(({ app }) => swept(pool, app, database, expired)).finally(async () => {
      await pool.end();
      await database.stop();
    });
    rows.push({ store: 'PostgreSQL', expired, seconds });
  }
  return { title: 'Grants that expire together', rows };
}

async function swept(pool, app, { options }, expired) {
  const server = await app({ app: 'keyed', ...options });
  await server.ask('seed', { from: 1, to: expired });
  await pool.query(`UPDATE ${TABLE} SET expires_at = now()`);
  const since = performance.now();
  // The first write of a store begins to sweep.
  await server.ask('seed', { from: expired + 1, to: expired + 1 });
  const left = () => pool.query(`SELECT FROM ${TABLE} WHERE expires_at < now() LIMIT 1`);
  while ((await left()).rowCount > 0) await pause(100);
  return (performance.now() - since) / 1000;
}
