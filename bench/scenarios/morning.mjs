import { startPostgres } from '../lib/postgres.mjs';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval, median } from '../lib/statistics.mjs';

const USERS = 2_000;
/** Token requests that the endpoint works on at once. */
const CAPACITY = 50;
const DELAYS_MS = [100, 400];

/** All users come within a second, and the token of each has expired: the last page against what the token endpoint itself needs. */
export async function morning({ quick, rounds }) {
  const rows = [];
  for (const [name, start, optionsOf, processes] of [
    ['1 process', async () => ({ stop() {} }), () => ({}), 1],
    ['4 over Redis', startRedis, ({ url }) => ({ redisUrl: url }), 4],
    ['4 over PostgreSQL', startPostgres, ({ url }) => ({ postgresUrl: url }), 4],
  ]) {
    const store = await start();
    if (store === undefined) continue;
    try {
      for (const delayMs of DELAYS_MS) {
        const mornings = [];
        for (let round = 0; round < (quick ? 1 : rounds); round += 1)
          mornings.push(await play({ processes, delayMs, ...optionsOf(store) }));
        const refused = Math.max(...mornings.map((one) => one.refused));
        const lastRatio = interval(
          mornings.map((one) => one.lastRatio),
          median,
        );
        rows.push({
          name,
          delayMs,
          refused,
          lastRatio,
          mostAtOnce: Math.max(...mornings.map((one) => one.mostAtOnce)),
        });
      }
    } finally {
      await store.stop();
    }
  }
  return {
    title: `${USERS} users whose tokens ended overnight come within a second`,
    users: USERS,
    capacity: CAPACITY,
    rows,
  };
}

function play({ processes, delayMs, ...store }) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenDelayMs: delayMs, tokenCapacity: CAPACITY });
    const load = await stage.load();
    const app = { app: 'keyed', service: service.ready, ...store };
    const servers = await Promise.all(Array.from({ length: processes }, () => stage.app(app)));
    // One grant more than users: it has the code compiled, and the connections made.
    await service.ask('seed', USERS + 1);
    await servers[0].ask('seed', { from: 1, to: USERS + 1, expired: true });
    const ports = servers.map(({ ready }) => ready.port);
    const task = { ports, path: '/projects' };
    const warmUp = { ...task, headers: [{ 'x-user': String(USERS + 1) }], requests: 200, connections: 20 };
    await load.ask('run', warmUp);
    await service.ask('stats');
    const headers = Array.from({ length: USERS }, (_none, index) => ({ 'x-user': String(index + 1) }));
    const { durationMs, statuses } = await load.ask('run', {
      ...task,
      headers,
      requests: USERS,
      connections: USERS,
      withinMs: 1_000,
    });
    const { mostAtOnce } = await service.ask('stats');
    return {
      refused: USERS - (statuses[200] ?? 0),
      lastRatio: durationMs / ((USERS / CAPACITY) * delayMs),
      mostAtOnce,
    };
  });
}
