import { compared, fromTheStart, roundOf } from '../lib/starts.mjs';
import { interval, median } from '../lib/statistics.mjs';

const CONTESTANTS = [
  { name: 'floor', app: 'floor' },
  { name: 'floor, once more', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand, fetch', app: 'hand-written' },
  { name: 'express-openid-connect, fetch', app: 'openid-connect', sessions: 'cookie' },
  { name: 'node:http alone, no login (limit)', app: 'plain-node' },
];

const PASSING_ON = [
  { name: 'pass-through by hand', app: 'floor' },
  { name: 'pass-through by hand, once more', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
];

/** `GET /projects` of an application: one request comes in, one goes out to the API. */
export function application(settings) {
  return play(settings, CONTESTANTS, '/projects', 'GET /projects of an application that asks the API');
}

/** The same, and the application passes the answer on as it is: `forward(strategy)`. */
export function forward(settings) {
  return play(settings, PASSING_ON, '/api/projects', 'A request that is passed on to the API');
}

async function play(settings, contestants, path, title) {
  const firsts = Object.fromEntries(contestants.map(({ name }) => [name, []]));
  const plays = await fromTheStart(settings, async ({ app, load }) => {
    const entered = [];
    // One after the other: the first request of each is timed.
    for (const { name, ...options } of contestants) {
      const server = await app(options);
      firsts[name].push(await firstOf(server, load, path));
      entered.push({ name, measure: await roundOf(server, load, { path, requests: 300, connections: 50 }) });
    }
    return entered;
  });
  const rows = compared(plays, contestants[0].name).map((row) => ({
    ...row,
    firstLoginMs: median(firsts[row.name].map(({ loginMs }) => loginMs)),
    firstMs: median(firsts[row.name].map(({ requestMs }) => requestMs)),
    startCpuMs: interval(firsts[row.name].map(({ cpuMs }) => cpuMs)),
  }));
  return { title, rows };
}

async function firstOf(server, load, path) {
  const { port } = server.ready;
  const since = performance.now();
  const [Cookie] = await load.ask('logIns', { port, users: 1 });
  const loginMs = performance.now() - since;
  const { lastMs } = await load.ask('run', { ports: [port], path, headers: [{ Cookie }], requests: 1, connections: 1 });
  return { loginMs, requestMs: lastMs, cpuMs: (await server.ask('usage')).cpuUs / 1000 };
}
