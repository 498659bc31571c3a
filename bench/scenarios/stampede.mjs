import { setTimeout as pause } from 'node:timers/promises';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval, median } from '../lib/statistics.mjs';

const REQUESTS = 200;
/** About what a token endpoint in the same region takes. */
const TOKEN_DELAY_MS = 20;

const TOGETHER_REQUESTS = 1_000;
const TOGETHER_PROCESSES = 4;
/**
 * A slow one: a thousand answers alone take two cores a part of a second, and against a fast token endpoint that would be all
 * that the last answer tells.
 */
const TOGETHER_TOKEN_DELAY_MS = 1_000;

const FIRST_LIFETIME_S = 1;

const CONTESTANTS = [
  { name: 'passport-oauth-app', app: 'ours', processes: 1 },
  { name: 'passport-oauth2 by hand', app: 'hand-written', processes: 1 },
  { name: 'passport-oauth2 by hand, single-flight', app: 'hand-written', singleFlight: true, processes: 1 },
  { name: 'express-openid-connect, memory', app: 'openid-connect', processes: 1 },
  { name: 'passport-oauth-app, 4 processes', app: 'ours', processes: 4, redis: true },
  {
    name: 'passport-oauth2 by hand, single-flight, 4 processes',
    app: 'hand-written',
    singleFlight: true,
    processes: 4,
    redis: true,
  },
  { name: 'express-openid-connect, 4 processes', app: 'openid-connect', processes: 4, redis: true },
];

/** Many requests of one user at once, when the access token has just expired. */
export async function stampede({ quick }) {
  const redis = await startRedis();
  try {
    const times = quick ? 2 : 4;
    const rows = [];
    for (const { name, ...contestant } of CONTESTANTS) {
      const bursts = await endure(contestant, redis.url, { times, requests: REQUESTS, tokenDelayMs: TOKEN_DELAY_MS });
      rows.push({ name, ...totals(bursts) });
    }
    return {
      title: `${REQUESTS} requests at once with an expired token`,
      tokenDelayMs: TOKEN_DELAY_MS,
      rows,
      together: await together(redis.url, quick ? 2 : 9),
    };
  } finally {
    await redis.stop();
  }
}

/** A thousand requests over four processes; and the same thousand with a fresh token, which is what the answers alone take. */
async function together(redisUrl, times) {
  const contestant = { app: 'ours', processes: TOGETHER_PROCESSES, redis: true };
  const task = { times, requests: TOGETHER_REQUESTS, tokenDelayMs: TOGETHER_TOKEN_DELAY_MS };
  const bursts = await endure(contestant, redisUrl, task);
  return {
    requests: TOGETHER_REQUESTS,
    processes: TOGETHER_PROCESSES,
    tokenDelayMs: TOGETHER_TOKEN_DELAY_MS,
    ...totals(bursts),
    lastRatio: interval(
      bursts.map(({ lastMs }) => lastMs / TOGETHER_TOKEN_DELAY_MS),
      median,
    ),
    freshMs: interval(
      bursts.map(({ freshMs }) => freshMs),
      median,
    ),
  };
}

function endure({ processes, redis, ...options }, redisUrl, { times, requests, tokenDelayMs }) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenDelayMs, firstLifetimeS: FIRST_LIFETIME_S });
    const load = await stage.load();
    const shared = redis ? { redisUrl } : {};
    const starting = Array.from({ length: processes }, () =>
      stage.app({ service: service.ready, ...options, ...shared }),
    );
    const ports = (await Promise.all(starting)).map(({ ready }) => ready.port);
    const bursts = [];
    for (let time = 0; time <= times; time += 1) bursts.push(await burst(load, service, ports, requests));
    // The first one compiled the code.
    return bursts.slice(1);
  });
}

async function burst(load, service, ports, requests) {
  const [Cookie] = await load.ask('logIns', { port: ports[0], users: 1 });
  await pause(FIRST_LIFETIME_S * 1000 + 200);
  await service.ask('stats');
  const task = { ports, path: '/projects', headers: [{ Cookie }], requests, connections: requests };
  const { statuses, lastMs } = await load.ask('run', task);
  const { refreshed, refused } = await service.ask('stats');
  const fresh = await load.ask('run', task);
  return {
    tokenRequests: refreshed + refused,
    failures: requests - (statuses[200] ?? 0),
    lastMs,
    freshMs: fresh.lastMs,
  };
}

function totals(bursts) {
  const of = (name) => bursts.map((one) => one[name]);
  return {
    tokenRequests: median(of('tokenRequests')),
    failures: median(of('failures')),
    mostTokenRequests: Math.max(...of('tokenRequests')),
    mostFailures: Math.max(...of('failures')),
    lastMs: interval(of('lastMs'), median),
  };
}
