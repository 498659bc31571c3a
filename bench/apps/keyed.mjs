import express from 'express';
import { apiClient, memoryTokenStore, Strategy } from '../../dist/index.js';
import { redisTokenStore } from '../../dist/redis.js';
import { seedGrant } from '../lib/seeded-grant.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';

const BATCH = 1_000;

/** An application whose users are named by a header, without sessions: what is left is the cost of finding a grant. */
export function createApp({ redis, service, origin }) {
  const strategy = new Strategy({
    ...strategyOptions(service, origin),
    tokenStore: redis ? redisTokenStore(redis) : memoryTokenStore(),
    grantId: (_req, user) => user,
  });
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
  return { handler: app, tasks: { seed: (range) => seed(strategy, range) } };
}

/** Grants of the users from `from` up to and with `to`. */
async function seed(strategy, { from, to }) {
  const now = Date.now();
  for (let first = from; first <= to; first += BATCH) {
    const users = Array.from({ length: Math.min(BATCH, to - first + 1) }, (_none, index) => String(first + index));
    await Promise.all(users.map((user) => seedGrant(strategy, user, now)));
  }
}
