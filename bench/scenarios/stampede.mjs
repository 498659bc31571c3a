import { setTimeout as pause } from 'node:timers/promises';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { summary } from '../lib/statistics.mjs';

const REQUESTS = 200;
/** About what a token endpoint in the same region takes. */
const TOKEN_DELAY_MS = 20;
const FIRST_LIFETIME_S = 1;

const CONTESTANTS = [
  { name: 'passport-oauth-app', app: 'ours', processes: 1 },
  { name: 'passport-oauth2 by hand', app: 'hand-written', processes: 1 },
  { name: 'passport-oauth2 by hand, single-flight', app: 'hand-written', singleFlight: true, processes: 1 },
  { name: 'express-openid-connect, memory', app: 'openid-connect', processes: 1 },
  { name: 'passport-oauth-app, over Redis', app: 'ours', processes: 1, redis: true },
  { name: 'passport-oauth-app, 4 processes', app: 'ours', processes: 4, redis: true },
  { name: 'passport-oauth2 by hand, 4 processes', app: 'hand-written', processes: 4, redis: true },
  {
    name: 'passport-oauth2 by hand, single-flight, 4 processes',
    app: 'hand-written',
    singleFlight: true,
    processes: 4,
    redis: true,
  },
  { name: 'express-openid-connect, 4 processes', app: 'openid-connect', processes: 4, redis: true },
];

/** 200 requests of one user at once, when the access token has just expired. */
export async function stampede({ quick }) {
  const redis = await startRedis();
  try {
    const rows = [];
    for (const contestant of CONTESTANTS) rows.push(await endure(contestant, redis.url, quick ? 3 : 5));
    return { title: `${REQUESTS} requests at once with an expired token`, tokenDelayMs: TOKEN_DELAY_MS, rows };
  } finally {
    await redis.stop();
  }
}

function endure({ name, processes, redis, ...options }, redisUrl, times) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenDelayMs: TOKEN_DELAY_MS, firstLifetimeS: FIRST_LIFETIME_S });
    const load = await stage.load();
    const shared = redis ? { redisUrl } : {};
    const starting = Array.from({ length: processes }, () =>
      stage.app({ service: service.ready, ...options, ...shared }),
    );
    const ports = (await Promise.all(starting)).map(({ ready }) => ready.port);
    const bursts = [];
    for (let time = 0; time <= times; time += 1) bursts.push(await burst(load, service, ports));
    // The first one compiled the code.
    return { name, processes, ...totals(bursts.slice(1)) };
  });
}

async function burst(load, service, ports) {
  const [Cookie] = await load.ask('logIns', { port: ports[0], users: 1 });
  await pause(FIRST_LIFETIME_S * 1000 + 200);
  await service.ask('stats');
  const task = { ports, path: '/projects', headers: [{ Cookie }], requests: REQUESTS, connections: REQUESTS };
  const { statuses, lastMs } = await load.ask('run', task);
  const { refreshed, refused } = await service.ask('stats');
  return { tokenRequests: refreshed + refused, failures: REQUESTS - (statuses[200] ?? 0), lastMs };
}

function totals(bursts) {
  return {
    tokenRequests: summary(bursts.map(({ tokenRequests }) => tokenRequests)),
    failures: summary(bursts.map(({ failures }) => failures)),
    mostTokenRequests: Math.max(...bursts.map(({ tokenRequests }) => tokenRequests)),
    mostFailures: Math.max(...bursts.map(({ failures }) => failures)),
    lastMs: summary(bursts.map(({ lastMs }) => lastMs)),
  };
}
