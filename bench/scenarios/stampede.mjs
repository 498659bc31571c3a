import { setTimeout as pause } from 'node:timers/promises';
import { startRedis } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval, median } from '../lib/statistics.mjs';

/** The delay is about what a token endpoint in the same region takes. */
const USUAL = { processes: 1, times: 4, requests: 200, tokenDelayMs: 20 };
const FIRST_LIFETIME_S = 1;

/**
 * A thousand requests over four processes, against a slow endpoint: a thousand answers alone take two cores a part of a second, and
 * against a fast token endpoint that would be all that the last answer tells.
 */
const TOGETHER = { app: 'ours', processes: 4, times: 7, requests: 1_000, tokenDelayMs: 2_000 };

const SINGLE_FLIGHT = { app: 'hand-written', singleFlight: true };
const CONTESTANTS = [
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'passport-oauth2 by hand, single-flight', ...SINGLE_FLIGHT },
  { name: 'express-openid-connect, memory', app: 'openid-connect' },
  { name: 'passport-oauth-app, 4 processes', app: 'ours', processes: 4 },
  { name: 'passport-oauth2 by hand, single-flight, 4 processes', ...SINGLE_FLIGHT, processes: 4 },
  { name: 'express-openid-connect, 4 processes', app: 'openid-connect', processes: 4 },
];

/** Many requests of one user at once, when the access token has just expired. Several processes share a Redis. */
export async function stampede({ quick }) {
  const redis = await startRedis();
  const endure = async (contestant) => {
    const { tokenDelayMs, processes, times, requests, ...options } = { ...USUAL, ...contestant };
    const app = processes > 1 ? { ...options, ...redis.options } : options;
    const play = (stage) => burstsOf(stage, { app, processes, times: quick ? 2 : times, requests });
    return await onStage(play, { tokenDelayMs, firstLifetimeS: FIRST_LIFETIME_S });
  };
  try {
    const rows = [];
    for (const { name, ...contestant } of CONTESTANTS) rows.push({ name, ...totals(await endure(contestant)) });
    const { requests, processes, tokenDelayMs } = TOGETHER;
    const bursts = await endure(TOGETHER);
    const ratios = bursts.map(({ lastMs }) => lastMs / tokenDelayMs);
    // The same thousand with a fresh token: what the answers alone take.
    const fresh = bursts.map(({ freshMs }) => freshMs);
    const counted = { ...totals(bursts), lastRatio: interval(ratios, median), freshMs: interval(fresh, median) };
    const together = { requests, processes, tokenDelayMs, ...counted };
    const title = `${USUAL.requests} requests at once with an expired token`;
    return { title, tokenDelayMs: USUAL.tokenDelayMs, rows, together };
  } finally {
    await redis.stop();
  }
}

async function burstsOf({ service, load, app: start }, { app, processes, times, requests }) {
  const servers = await Promise.all(Array.from({ length: processes }, () => start(app)));
  const ports = servers.map(({ ready }) => ready.port);
  const bursts = [];
  for (let time = 0; time <= times; time += 1) {
    const [Cookie] = await load.ask('logIns', { port: ports[0], users: 1 });
    await pause(FIRST_LIFETIME_S * 1000 + 200);
    await service.ask('stats');
    const task = { ports, path: '/projects', headers: [{ Cookie }], requests, connections: requests };
    const { statuses, lastMs } = await load.ask('run', task);
    const { refreshed, refused } = await service.ask('stats');
    const { lastMs: freshMs } = await load.ask('run', task);
    bursts.push({ tokenRequests: refreshed + refused, failures: requests - (statuses[200] ?? 0), lastMs, freshMs });
  }
  // The first one compiled the code.
  return bursts.slice(1);
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
