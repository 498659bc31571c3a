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
/** Enough for Redis' own clock of its CPU. */
const PLAYS = 4;

/** With a session of as many characters as the package's. */
const AS_LARGE = 'bare, as large a session';
/** The same, and with one more `GET` of as many characters as a grant has. */
const ONE_MORE_GET = 'bare, as large a session, one more GET';

const IN_MEMORY = [
  { name: AS_LARGE, app: 'bare', isAsLarge: true },
  { name: `${AS_LARGE}, once more`, app: 'bare', isAsLarge: true },
  { name: 'bare', app: 'bare' },
  { name: 'floor', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'express-openid-connect, memory', app: 'openid-connect' },
];

const OVER_REDIS = [
  { name: 'bare', app: 'bare' },
  { name: ONE_MORE_GET, app: 'bare', isAsLarge: true, readsGrant: true },
  { name: `${ONE_MORE_GET}, once more`, app: 'bare', isAsLarge: true, readsGrant: true },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth-app, cache: false', app: 'ours', cache: false },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
];

/** A request of a user who is logged in, with a fresh token and no API call, against the least that any application has. */
export async function overhead(settings) {
  const plays = await fromTheStart(settings, (stage) => enterAll(stage, IN_MEMORY));
  return {
    title: 'A logged-in request with a fresh token and no API call, sessions in memory',
    rows: compared(plays, AS_LARGE),
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
    const rows = compared(plays, ONE_MORE_GET).map((row) => ({ ...row, ...costs[row.name] }));
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
  { name, isAsLarge = false, readsGrant = false, ...options },
  { requests = REQUESTS, connections = CONNECTIONS } = {},
) {
  const { sessionChars, grantChars } = isAsLarge ? await sizesOf(stage, load, { ...options, service }) : {};
  const sizes = { sessionChars, grantChars: readsGrant ? grantChars : undefined };
  const server = await stage.app({ service, ...sizes, ...options });
  const { port } = server.ready;
  const cookies = await load.ask('logIns', { port, users: USERS });
  const headers = cookies.map((Cookie) => ({ Cookie }));
  const task = { ports: [port], path: '/', headers, requests, connections };
  return { name, measure: () => measured(server, requests, () => load.ask('run', task), 200) };
}

/** What the package stores for one user: the fair measure is as large. */
async function sizesOf(stage, load, options) {
  const ours = await stage.app({ ...options, app: 'ours' });
  await load.ask('logIns', { port: ours.ready.port, users: 1 });
  return await ours.ask('stored');
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
      for (let time = 0; time < PLAYS; time += 1) await many.measure();
      return {
        commands: calls.reduce((sum, [, count]) => sum + Number(count), 0) / COUNTED,
        storeCpuUs: ((await redis.cpuUs()) - before) / (PLAYS * REQUESTS),
      };
    } finally {
      client.destroy();
    }
  });
}
