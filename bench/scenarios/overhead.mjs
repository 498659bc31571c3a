import { otherCore } from '../lib/cores.mjs';
import { redisClient, startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { compared, fromTheStart, measured } from '../lib/starts.mjs';

const CONNECTIONS = 32;
const USERS = 20;
/** Short rounds, and many: what disturbs the machine lasts for seconds, and is to fall on whole rounds. */
const REQUESTS = 500;
/** Enough to count commands. */
const COUNTED = 100;

const IN_MEMORY = [
  { name: 'bare', app: 'bare' },
  { name: 'bare, once more', app: 'bare' },
  { name: 'floor', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'express-openid-connect, memory', app: 'openid-connect' },
];

const OVER_REDIS = [
  { name: 'bare', app: 'bare' },
  { name: 'bare, once more', app: 'bare' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth-app, cache: false', app: 'ours', cache: false },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
];

/** A request of a user who is logged in, with a fresh token and no API call, against the least that any application has. */
export async function overhead(settings) {
  const plays = await fromTheStart(settings, (stage) => enterAll(stage, IN_MEMORY));
  return {
    title: 'A logged-in request with a fresh token and no API call, sessions in memory',
    rows: compared(plays, 'bare'),
  };
}

/** The same with sessions, and grants, in Redis; and what Redis is asked for each request. */
export async function overheadRedis(settings) {
  const redis = await startRedis({ core: otherCore });
  try {
    const contestants = OVER_REDIS.map((one) => ({ ...one, redisUrl: redis.url }));
    const plays = await fromTheStart(settings, (stage) => enterAll(stage, contestants));
    const costs = {};
    for (const one of contestants) costs[one.name] = await costOf(one, redis);
    const rows = compared(plays, 'bare').map((row) => ({ ...row, ...costs[row.name] }));
    return { title: 'The same with sessions and grants in Redis', rows };
  } finally {
    await redis.stop();
  }
}

async function enterAll(stage, contestants) {
  const service = await stage.service();
  const load = await stage.load();
  return await Promise.all(contestants.map((one) => enter(stage, load, service.ready, one)));
}

async function enter(
  stage,
  load,
  service,
  { name, ...options },
  { requests = REQUESTS, connections = CONNECTIONS } = {},
) {
  const server = await stage.app({ service, ...options });
  const { port } = server.ready;
  const cookies = await load.ask('logIns', { port, users: USERS });
  const headers = cookies.map((Cookie) => ({ Cookie }));
  const task = { ports: [port], path: '/', headers, requests, connections };
  return { name, measure: () => measured(server, requests, () => load.ask('run', task), 200) };
}

/** What Redis has to do for one request, by its own count: commands, and microseconds of its CPU. */
function costOf(contestant, redis) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const enterWith = (options) => enter(stage, load, service.ready, contestant, options);
    // One after the other: requests of one user at once share a read of the store.
    const one = await enterWith({ requests: COUNTED, connections: 1 });
    const many = await enterWith();
    await one.measure();
    await many.measure();
    const client = await redisClient(redis.url);
    try {
      await client.configResetStat();
      await one.measure();
      const stats = await client.info('commandstats');
      const calls = [...stats.matchAll(/cmdstat_(?!config|info)[\w|]+:calls=(\d+)/g)];
      const before = await redis.cpuUs();
      await many.measure();
      return {
        commands: calls.reduce((sum, [, count]) => sum + Number(count), 0) / COUNTED,
        storeCpuUs: ((await redis.cpuUs()) - before) / REQUESTS,
      };
    } finally {
      client.destroy();
    }
  });
}
