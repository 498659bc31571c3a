import express from 'express';
import { apiClient, memoryTokenStore, Strategy } from '../../dist/index.js';
import { postgresTokenStore } from '../../dist/postgres.js';
import { redisTokenStore } from '../../dist/redis.js';
import { seedGrant, strategyOptions } from '../lib/seeded-grant.mjs';
import { headerUser } from './common.mjs';

const BATCH = 100;
const BULK = 10_000;

/**
 * An application whose users are named by a header, without sessions: what is left is the cost of finding a grant.
 *
 * @param {{ cache?: false }} options
 */
export function createApp({ redis, postgres, service, origin, cache }) {
  const grantId = (_req, user) => user;
  const strategyOver = (tokenStore) =>
    new Strategy({ ...strategyOptions(service, origin), tokenStore, grantId, cache });
  const inDatabase = redis ? redisTokenStore(redis) : postgres && postgresTokenStore(postgres);
  const strategy = strategyOver(inDatabase ?? memoryTokenStore());
  const app = express();
  app.use(headerUser, apiClient(strategy));
  app.get('/', async (req, res) => {
    await req.apiClient.accessToken();
    res.json({ user: req.user });
  });
  app.get('/projects', async (req, res) => {
    const { data } = await req.apiClient.get('/projects');
    res.json({ projects: data.length });
  });
  const seedAll = (range) => (postgres ? seedInBulk(strategyOver, postgres, range) : seed(strategy, range));
  return { handler: app, tasks: { seed: seedAll, walk: () => walk(strategy) } };
}

/** How long it takes to list all grants, and to look at all of them where `keepAlive` finds none that is old. */
async function walk(strategy) {
  const since = performance.now();
  let listed = 0;
  for await (const _grant of strategy.grants()) listed += 1;
  const listMs = performance.now() - since;
  const { seen } = await strategy.keepAlive({ olderThan: 86_400 });
  if (seen !== listed) throw new Error(`${listed} grants were listed, and ${seen} looked at`);
  return { listMs, keepAliveMs: performance.now() - since - listMs };
}

/** Gives grants to the users from `from` up to and with `to`. @param {{ from: number, to: number, expired?: boolean }} range `expired`: since yesterday */
async function seed(strategy, { from, to, expired = false }) {
  const since = expired ? Date.now() - 86_400_000 : Date.now();
  for (let first = from; first <= to; first += BATCH) {
    const users = Array.from({ length: Math.min(BATCH, to - first + 1) }, (_none, index) => String(first + index));
    await Promise.all(users.map((user) => seedGrant(strategy, user, since)));
  }
}

/** The same grants as {@link seed}, but many in one statement: a million of them one by one take PostgreSQL a quarter of an hour. */
async function seedInBulk(strategyOver, postgres, range) {
  // Creates the table.
  await seed(strategyOver(postgresTokenStore(postgres)), { ...range, to: range.from });
  let rows = [];
  const collecting = {
    get: async () => undefined,
    set: async (id, grant) => void rows.push([id, grant.version, JSON.stringify(grant)]),
    delete: async () => {},
  };
  for (let from = range.from; from <= range.to; from += BULK) {
    rows = [];
    await seed(strategyOver(collecting), { ...range, from, to: Math.min(range.to, from + BULK - 1) });
    await postgres.query(
      `INSERT INTO passport_oauth_app_grants (id, version, record, expires_at)
       SELECT *, now() + interval '1 day' FROM unnest($1::text[], $2::bigint[], $3::text[])
       ON CONFLICT (id) DO NOTHING`,
      [0, 1, 2].map((column) => rows.map((row) => row[column])),
    );
  }
  await postgres.query('ANALYZE passport_oauth_app_grants');
}
