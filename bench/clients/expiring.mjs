import { setTimeout as pause } from 'node:timers/promises';
import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { seedGrant } from '../lib/seeded-grant.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/** A process with many grants that all expire in the same second, under a clock that is told the time. */
const { service, grants } = argument;
const LIFETIME_MS = 7_200_000;

const tokenStore = memoryTokenStore();
const start = Date.now();
const expiresAt = start + LIFETIME_MS;
let now = start;
const strategy = new Strategy({
  ...strategyOptions(service),
  tokenStore,
  cache: { max: 100_000, ttl: 86_400 },
  clock: () => now,
});

const clients = [];
for (let user = 1; user <= grants; user += 1) {
  await seedGrant(strategy, String(user), start);
  clients.push(strategy.client(String(user)));
}
await Promise.all(clients.map((client) => client.accessToken()));

answerTasks(undefined, { useBeforeExpiry, useAllAtOnce });

/**
 * Each grant is used every ten seconds while the time goes from `fromS` to `toS` seconds before the expiry.
 *
 * @returns {Promise<{ startedAt: number }>} wall clock of the start
 */
async function useBeforeExpiry({ fromS, toS }) {
  const startedAt = Date.now();
  const due = clients.map((client) => ({ client, at: Math.random() * 10_000 })).sort((a, b) => a.at - b.at);
  for (let round = 0; round * 10 < fromS - toS; round += 1) {
    for (const { client, at } of due) {
      const wanted = startedAt + round * 10_000 + at;
      // Uses that fall into one millisecond go together.
      while (Date.now() < wanted) await pause(1);
      now = expiresAt - fromS * 1000 + (Date.now() - startedAt);
      await client.accessToken();
    }
  }
  return { startedAt };
}

/** All grants have expired, as after a night, and all are used in one moment. */
async function useAllAtOnce() {
  now += 2 * LIFETIME_MS;
  const since = performance.now();
  const results = await Promise.allSettled(clients.map((client) => client.accessToken()));
  return {
    durationMs: performance.now() - since,
    failures: results.filter(({ status }) => status === 'rejected').length,
  };
}
