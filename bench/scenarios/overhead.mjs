import { startRedis } from '../lib/redis.mjs';
import { compared, inTurns, measured } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';

const CONNECTIONS = 32;
const USERS = 20;

const IN_MEMORY = [
  { name: 'bare', app: 'bare' },
  { name: 'bare, once more', app: 'bare' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'express-openid-connect, memory', app: 'openid-connect' },
  { name: 'express-openid-connect, cookie', app: 'openid-connect', sessions: 'cookie' },
];

/** A request of a user who is logged in, with a fresh token and no API call, against the least that any application has. */
export async function overhead(settings) {
  return {
    title: 'A logged-in request with a fresh token and no API call, sessions in memory',
    rows: await compete(settings, IN_MEMORY),
  };
}

/** The same with sessions, and grants, in Redis. */
export async function overheadRedis(settings) {
  const redis = await startRedis();
  try {
    const contestants = IN_MEMORY.filter(({ sessions }) => sessions !== 'cookie').map((one) => ({
      ...one,
      redisUrl: redis.url,
    }));
    return {
      title: 'The same with sessions and grants in Redis',
      rows: await compete(settings, contestants),
    };
  } finally {
    await redis.stop();
  }
}

function compete({ rounds, share }, contestants) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const requests = Math.round(2500 * share);
    const entered = [];
    for (const { name, ...options } of contestants)
      entered.push(await enter(stage, load, service.ready, requests, name, options));
    await inTurns(entered, 2);
    return compared(await inTurns(entered, rounds), 'bare');
  });
}

async function enter(stage, load, service, requests, name, options) {
  const server = await stage.app({ service, ...options });
  const { port } = server.ready;
  const cookies = await load.ask('logIns', { port, users: USERS });
  const headers = cookies.map((Cookie) => ({ Cookie }));
  const task = { ports: [port], path: '/', headers, requests, connections: CONNECTIONS };
  return { name, measure: () => measured(server, requests, () => load.ask('run', task), 200) };
}
