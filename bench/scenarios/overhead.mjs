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

/** Two processes of one program differ by several percent for as long as they live: so each one plays with several of its kind. */
const CASTS = 5;

/** Short rounds, and many: what disturbs the machine lasts for seconds, and is to fall on whole rounds. */
const REQUESTS = 500;
const ROUNDS_FOR_ONE = 2;

async function compete({ rounds, quick }, contestants) {
  const casts = [];
  for (let cast = 0; cast < (quick ? 1 : CASTS); cast += 1) {
    casts.push(await play(contestants, REQUESTS, rounds * ROUNDS_FOR_ONE));
  }
  const samples = contestants.map(({ name }) => [name, casts.flatMap((cast) => cast[name])]);
  return compared(Object.fromEntries(samples), 'bare');
}

function play(contestants, requests, rounds) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const entered = [];
    for (const { name, ...options } of contestants)
      entered.push(await enter(stage, load, service.ready, requests, name, options));
    await inTurns(entered, 8);
    return await inTurns(entered, rounds);
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
