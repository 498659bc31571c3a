import { compared, fromTheStart, measured } from '../lib/starts.mjs';
import { interval, median } from '../lib/statistics.mjs';

const CONNECTIONS = 50;
const USERS = 20;
const REQUESTS = 300;

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
  const firsts = {};
  const plays = await fromTheStart(settings, async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const entered = [];
    // One after the other: the first request of each is timed.
    for (const { name, ...options } of contestants) {
      const { contestant, first } = await enter(stage, load, { name, path, service: service.ready, ...options });
      firsts[name] = [...(firsts[name] ?? []), first];
      entered.push(contestant);
    }
    return entered;
  });
  const rows = compared(plays, contestants[0].name).map((row) => {
    const own = firsts[row.name];
    return {
      ...row,
      firstLoginMs: median(own.map(({ loginMs }) => loginMs)),
      firstMs: median(own.map(({ requestMs }) => requestMs)),
      startCpuMs: interval(own.map(({ cpuMs }) => cpuMs)),
    };
  });
  return { title, rows };
}

async function enter(stage, load, { name, path, ...options }) {
  const server = await stage.app(options);
  const { port } = server.ready;
  const since = performance.now();
  const [Cookie] = await load.ask('logIns', { port, users: 1 });
  const loginMs = performance.now() - since;
  const task = { ports: [port], path, connections: CONNECTIONS };
  const once = await load.ask('run', { ...task, headers: [{ Cookie }], requests: 1, connections: 1 });
  const { cpuUs } = await server.ask('usage');
  const cookies = await load.ask('logIns', { port, users: USERS });
  const all = { ...task, headers: cookies.map((one) => ({ Cookie: one })), requests: REQUESTS };
  return {
    first: { loginMs, requestMs: once.lastMs, cpuMs: cpuUs / 1000 },
    contestant: { name, measure: () => measured(server, REQUESTS, () => load.ask('run', all), 200) },
  };
}
