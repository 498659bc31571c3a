import { otherCore } from '../lib/cores.mjs';
import { redisClient, startRedis } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { compared, playApps, roundOf } from '../lib/starts.mjs';

/** Short rounds, and many: what disturbs the machine lasts for seconds, and is to fall on whole rounds. */
const ROUND = { path: '/', requests: 500, connections: 32 };
/** Enough to count commands. One after the other: requests of one user at once share a read of the store. */
const COUNTED = { path: '/', requests: 100, connections: 1 };
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
  const rows = compared(await playApps(settings, IN_MEMORY, ROUND, start), AS_LARGE);
  return { title: 'A logged-in request with a fresh token and no API call, sessions in memory', rows };
}

/** The same with sessions, and grants, in Redis; and what Redis is asked for each request. */
export async function overheadRedis(settings) {
  const redis = await startRedis({ core: otherCore });
  try {
    const contestants = OVER_REDIS.map((one) => ({ ...one, ...redis.options }));
    const rows = compared(await playApps(settings, contestants, ROUND, start), ONE_MORE_GET);
    for (const [index, one] of contestants.entries())
      Object.assign(rows[index], await onStage((stage) => costOf(stage, one, redis)));
    return { title: 'The same with sessions and grants in Redis', rows };
  } finally {
    await redis.stop();
  }
}

async function start({ app, load }, { name, isAsLarge, readsGrant, ...options }) {
  if (!isAsLarge) return await app(options);
  // What the package stores for one user: the fair measure is as large.
  const ours = await app({ ...options, app: 'ours' });
  await load.ask('logIns', { port: ours.ready.port, users: 1 });
  const { sessionChars, grantChars } = await ours.ask('stored');
  return await app({ ...options, sessionChars, grantChars: readsGrant ? grantChars : undefined });
}

/** What Redis has to do for one request, by its own count: commands, and microseconds of its CPU. */
async function costOf(stage, contestant, redis) {
  const [one, many] = [
    await roundOf(await start(stage, contestant), stage.load, COUNTED),
    await roundOf(await start(stage, contestant), stage.load, ROUND),
  ];
  await one();
  await many();
  const client = await redisClient(redis.url);
  await client.configResetStat();
  await one();
  const calls = (await client.info('commandstats')).matchAll(/cmdstat_(?!config|info)[\w|]+:calls=(\d+)/g);
  client.destroy();
  const before = await redis.cpuUs();
  for (let time = 0; time < PLAYS; time += 1) await many();
  return {
    commands: [...calls].reduce((sum, [, count]) => sum + Number(count), 0) / COUNTED.requests,
    storeCpuUs: ((await redis.cpuUs()) - before) / (PLAYS * ROUND.requests),
  };
}
