import { startPostgres } from '../lib/postgres.mjs';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { inTurns } from '../lib/starts.mjs';
import { interval, median } from '../lib/statistics.mjs';

const COUNTS = [1, 2, 4, 8, 16];
const CONNECTIONS = 64;
const USERS = 1_000;
const REFRESHES = 2_000;

/** From one to sixteen processes of one application over one Redis, and over one PostgreSQL, on the cores that there are. */
export async function growthProcesses({ rounds, share, quick }) {
  const counts = quick ? COUNTS.slice(0, 3) : COUNTS;
  const settings = { counts, rounds, requests: Math.round(3_000 * share), refreshes: Math.round(REFRESHES * share) };
  const plays = [];
  for (const [store, start, optionsOf] of [
    ['Redis', startRedis, ({ url }) => ({ redisUrl: url })],
    ['PostgreSQL', startPostgres, ({ url }) => ({ postgresUrl: url })],
  ]) {
    const server = await start();
    if (server === undefined) continue;
    try {
      plays.push(await play(store, server, optionsOf(server), settings));
    } finally {
      await server.stop();
    }
  }
  return {
    title: 'Several processes over one store, each request reads it',
    rows: plays.flatMap(({ rows }) => rows),
    refreshes: plays.map(({ refresh }) => refresh),
  };
}

function play(store, database, options, { counts, rounds, requests, refreshes }) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    // Without the cache: what one store carries is to be seen.
    const app = { app: 'keyed', service: service.ready, cache: false, ...options };
    const servers = [await stage.app(app)];
    await servers[0].ask('seed', { from: 1, to: USERS });
    const more = Array.from({ length: counts.at(-1) - 1 }, () => stage.app(app));
    servers.push(...(await Promise.all(more)));
    const task = { path: '/', users: USERS, requests, connections: CONNECTIONS };
    const contestants = counts.map((count) => ({
      name: String(count),
      measure: () => together(servers.slice(0, count), database, load, task),
    }));
    await inTurns(contestants, 2);
    const samples = await inTurns(contestants, rounds);
    const rows = Object.entries(samples).map(([count, own]) => ({
      store,
      processes: Number(count),
      perSecond: interval(own.map(({ perSecond }) => perSecond)),
      cpuUs: interval(own.map(({ cpuUs }) => cpuUs)),
      storeCpuUs: interval(own.map(({ storeCpuUs }) => storeCpuUs)),
      p50Ms: median(own.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(own.map(({ p99Ms }) => p99Ms)),
    }));
    const refresh = await refreshed(store, servers.slice(0, 2), { service, database, load, refreshes });
    return { rows, refresh };
  });
}

/** Each request is of another user whose token has expired: what a refresh costs the processes, and the store. */
async function refreshed(store, servers, { service, database, load, refreshes }) {
  const last = USERS + 2 * refreshes;
  await service.ask('seed', last);
  await servers[0].ask('seed', { from: USERS + 1, to: last, expired: true });
  const measure = (from) => {
    const headers = Array.from({ length: refreshes }, (_none, index) => ({ 'x-user': String(from + index) }));
    return together(servers, database, load, { path: '/', headers, requests: refreshes, connections: CONNECTIONS });
  };
  await measure(USERS + 1);
  return { store, ...(await measure(USERS + 1 + refreshes)) };
}

async function together(servers, database, load, task) {
  const usage = async () =>
    (await Promise.all(servers.map((server) => server.ask('usage')))).reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  const before = { own: await usage(), store: await database.cpuUs() };
  const ports = servers.map(({ ready }) => ready.port);
  const { durationMs, statuses, p50Ms, p99Ms } = await load.ask('run', { ...task, ports });
  if (statuses[200] !== task.requests) throw new Error(JSON.stringify(statuses));
  const after = { own: await usage(), store: await database.cpuUs() };
  return {
    perSecond: (task.requests / durationMs) * 1000,
    cpuUs: (after.own - before.own) / task.requests,
    storeCpuUs: (after.store - before.store) / task.requests,
    p50Ms,
    p99Ms,
  };
}
