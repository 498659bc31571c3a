import express from 'express';
import { apiClient, memoryTokenStore, Strategy } from '../../dist/index.js';
import { postgresTokenStore } from '../../dist/postgres.js';
import { redisTokenStore } from '../../dist/redis.js';
import { seedGrant } from '../lib/seeded-grant.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';

const BATCH = 500;
const BULK = 10_000;

/**
 * An application whose users are named by a header, without sessions: what is left is the cost of finding a grant. Its clock stands
 * where its tasks have set it, or is the machine's.
 *
 * @param {{ cache?: false }} options
 */
export function createApp({ redis, postgres, service, origin, cache }) {
  let aheadMs = 0;
  const clock = () => Date.now() + aheadMs;
  const strategyOver = (tokenStore) =>
    new Strategy({
      ...strategyOptions(service, origin),
      tokenStore,
      grantId: (_req, user) => user,
      clock,
      cache,
    });
  const strategy = strategyOver(storeOf(redis, postgres));
  const seedAll = (range) =>
    postgres ? seedInBulk(strategyOver, postgres, range, clock()) : seed(strategy, range, clock());
  const app = express();
  app.use((req, _res, next) => {
    req.user = req.headers['x-user'];
    next();
  });
  app.use(apiClient(strategy));
  app.get('/', async (req, res) => {
    await req.apiClient.accessToken();
    res.json({ user: req.user });
  });
  app.get('/projects', async (req, res) => {
    const { data } = await req.apiClient.get('/projects');
    res.json({ projects: data.length });
  });
  const advance = (ms) => {
    aheadMs += ms;
  };
  return { handler: app, tasks: { seed: seedAll, advance } };
}

function storeOf(redis, postgres) {
  if (redis) return redisTokenStore(redis);
  return postgres ? postgresTokenStore(postgres) : memoryTokenStore();
}

/**
 * Gives grants to the users from `from` up to and with `to`.
 *
 * @param {{ from: number, to: number, expired?: boolean, withinMs?: number }} range `expired`: since yesterday; `withinMs`: they
 *   expire one after the other in this time
 */
async function seed(strategy, { from, to, expired = false, withinMs }, now) {
  const since = expired ? now - 86_400_000 : now;
  for (let first = from; first <= to; first += BATCH) {
    const users = Array.from({ length: Math.min(BATCH, to - first + 1) }, (_none, index) => first + index);
    await Promise.all(
      users.map((user) => {
        const expiresAt = withinMs === undefined ? undefined : now + (withinMs * (user - from + 1)) / (to - from + 1);
        return seedGrant(strategy, String(user), since, expiresAt);
      }),
    );
  }
}

/** The same grants as {@link seed}, but many in one statement: a million of them one by one take PostgreSQL a quarter of an hour. */
async function seedInBulk(strategyOver, postgres, range, now) {
  // Creates the table.
  await seed(strategyOver(postgresTokenStore(postgres)), { ...range, to: range.from }, now);
  let rows = [];
  const collecting = {
    get: async () => undefined,
    set: async (id, grant) => void rows.push([id, grant.version, JSON.stringify(grant)]),
    delete: async () => {},
  };
  for (let from = range.from; from <= range.to; from += BULK) {
    rows = [];
    await seed(strategyOver(collecting), { ...range, from, to: Math.min(range.to, from + BULK - 1) }, now);
    await postgres.query(
      `INSERT INTO passport_oauth_app_grants (id, version, record, expires_at)
       SELECT *, now() + interval '1 day' FROM unnest($1::text[], $2::bigint[], $3::text[])
       ON CONFLICT (id) DO NOTHING`,
      [0, 1, 2].map((column) => rows.map((row) => row[column])),
    );
  }
  await postgres.query('ANALYZE passport_oauth_app_grants');
}
