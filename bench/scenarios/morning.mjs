import { overDatabases } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval, median } from '../lib/statistics.mjs';

const USERS = 2_000;
/** Token requests that the endpoint works on at once. */
const CAPACITY = 50;
const DELAYS_MS = [100, 400];

/** All users come within a second, and the token of each has expired: the last page against what the token endpoint itself needs. */
export async function morning({ quick, rounds }) {
  const times = quick ? 1 : rounds;
  const one = await mornings('1 process', { processes: 1 }, times);
  const four = (store, { options }) => mornings(`4 over ${store}`, { processes: 4, ...options }, times);
  const rows = [...one, ...(await overDatabases(four))];
  const title = `${USERS} users whose tokens ended overnight come within a second`;
  return { title, users: USERS, capacity: CAPACITY, rows };
}

async function mornings(name, application, times) {
  const rows = [];
  for (const delayMs of DELAYS_MS) {
    const all = [];
    for (let time = 0; time < times; time += 1) {
      const service = { tokenDelayMs: delayMs, tokenCapacity: CAPACITY };
      all.push(await onStage((stage) => play(stage, application, delayMs), service));
    }
    const of = (figure) => all.map((one) => one[figure]);
    const most = { refused: Math.max(...of('refused')), mostAtOnce: Math.max(...of('mostAtOnce')) };
    rows.push({ name, delayMs, ...most, lastRatio: interval(of('lastRatio'), median) });
  }
  return rows;
}

async function play({ service, load, app }, { processes, ...store }, delayMs) {
  const servers = await Promise.all(Array.from({ length: processes }, () => app({ app: 'keyed', ...store })));
  // One grant more than users: it has the code compiled, and the connections made.
  await service.ask('seed', USERS + 1);
  await servers[0].ask('seed', { from: 1, to: USERS + 1, expired: true });
  const task = { ports: servers.map(({ ready }) => ready.port), path: '/projects' };
  await load.ask('run', { ...task, headers: [{ 'x-user': String(USERS + 1) }], requests: 200, connections: 20 });
  await service.ask('stats');
  const headers = Array.from({ length: USERS }, (_none, index) => ({ 'x-user': String(index + 1) }));
  const all = { ...task, headers, requests: USERS, connections: USERS, withinMs: 1_000 };
  const { durationMs, statuses } = await load.ask('run', all);
  const { mostAtOnce } = await service.ask('stats');
  const neededMs = (USERS / CAPACITY) * delayMs;
  return { refused: USERS - (statuses[200] ?? 0), lastRatio: durationMs / neededMs, mostAtOnce };
}
