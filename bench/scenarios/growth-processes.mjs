import { overDatabases } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { inTurns, measured, summary } from '../lib/starts.mjs';
import { interval } from '../lib/statistics.mjs';

const COUNTS = [1, 2, 4, 8, 16];
const CONNECTIONS = 64;
const USERS = 1_000;
const REFRESHES = 2_000;

/** From one to sixteen processes of one application over one Redis, and over one PostgreSQL, on the cores that there are. */
export async function growthProcesses({ rounds, share, quick }) {
  const counts = quick ? COUNTS.slice(0, 3) : COUNTS;
  const settings = { counts, rounds, requests: Math.round(3_000 * share), refreshes: Math.round(REFRESHES * share) };
  const plays = await overDatabases(async (store, database) => [
    await onStage((stage) => play(stage, store, database, settings)),
  ]);
  return {
    title: 'Several processes over one store, each request reads it',
    rows: plays.flatMap(({ rows }) => rows),
    refreshes: plays.map(({ refresh }) => refresh),
  };
}

async function play({ service, load, app }, store, database, { counts, rounds, requests, refreshes }) {
  // Without the cache: what one store carries is to be seen.
  const start = () => app({ app: 'keyed', cache: false, ...database.options });
  const servers = [await start()];
  await servers[0].ask('seed', { from: 1, to: USERS });
  servers.push(...(await Promise.all(Array.from({ length: counts.at(-1) - 1 }, start))));
  const run = (count, task) =>
    together(servers.slice(0, count), database, load, { path: '/', connections: CONNECTIONS, ...task });
  const contestant = (count) => ({ name: String(count), measure: () => run(count, { users: USERS, requests }) });
  const samples = await inTurns(counts.map(contestant), rounds);
  const rows = Object.entries(samples).map(([count, own]) => ({
    store,
    processes: Number(count),
    ...summary(own),
    storeCpuUs: interval(own.map(({ storeCpuUs }) => storeCpuUs)),
  }));
  // Each request is of another user whose token has expired: what a refresh costs the processes, and the store.
  const last = USERS + 2 * refreshes;
  await service.ask('seed', last);
  await servers[0].ask('seed', { from: USERS + 1, to: last, expired: true });
  const refresh = (from) => {
    const headers = Array.from({ length: refreshes }, (_none, index) => ({ 'x-user': String(from + index) }));
    return run(2, { headers, requests: refreshes });
  };
  await refresh(USERS + 1);
  return { rows, refresh: { store, ...(await refresh(USERS + 1 + refreshes)) } };
}

async function together(servers, database, load, task) {
  const ask = async (name) => {
    const usages = await Promise.all(servers.map((server) => server.ask(name)));
    return { cpuUs: usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0) };
  };
  const before = await database.cpuUs();
  const ports = servers.map(({ ready }) => ready.port);
  const sample = await measured({ ask }, task.requests, () => load.ask('run', { ...task, ports }), 200);
  return { ...sample, storeCpuUs: ((await database.cpuUs()) - before) / task.requests };
}
