import { onStage } from '../lib/stage.mjs';
import { inTurns, measured } from '../lib/starts.mjs';
import { interval, mean, median } from '../lib/statistics.mjs';

const FEW = 1_000;
const MANY = 1_000_000;
const CONNECTIONS = 32;
/** All of them are found in the cache, however many grants there are. */
const ACTIVE_USERS = 1_000;
const REQUESTS = 1_000;
/** Enough rounds for several collections of the whole heap: each takes long with a million grants. */
const ROUNDS = 16;

const OURS = 'passport-oauth-app';
const PLAIN = 'a plain Map';
/** Of an entry in the plain `Map`: makes it as large as a grant in the token store in memory. */
const ENTRY_CHARS = 1_070;

const CONTESTANTS = [
  { program: OURS, app: 'keyed', isMany: false, isAnyUser: false },
  { program: OURS, app: 'keyed', isMany: true, isAnyUser: false },
  { program: OURS, app: 'keyed', isMany: false, isAnyUser: true },
  { program: OURS, app: 'keyed', isMany: true, isAnyUser: true },
  { program: PLAIN, app: 'mapped', isMany: false, isAnyUser: false },
  { program: PLAIN, app: 'mapped', isMany: true, isAnyUser: false },
];

/**
 * CPU of a request where the token store in memory holds a thousand grants, and a million: processes of both, side by side. And the
 * same of an application that has as much in a plain `Map`, which tells what a heap of this size takes by itself.
 */
export async function grants({ starts, rounds, quick }) {
  const many = quick ? MANY / 20 : MANY;
  const plays = CONTESTANTS.map(() => []);
  // Each start seeds a million grants: fewer starts, and more rounds.
  for (let start = 0; start < Math.ceil(starts / 5); start += 1) {
    const samples = await play(many, quick ? rounds : ROUNDS);
    for (const [index, own] of plays.entries()) own.push(...samples[index]);
  }
  const baselineOf = (program) => plays[CONTESTANTS.findIndex((one) => one.program === program)];
  return {
    title: 'A thousand and a million grants in the token store in memory',
    rows: CONTESTANTS.map(({ program, isMany, isAnyUser }, index) => ({
      program,
      grants: isMany ? many : FEW,
      requests: isAnyUser ? 'of any user' : 'of 1,000 users',
      ...figuresOf(plays[index]),
      cpuRatio: ratioOf(plays[index], baselineOf(program)),
    })),
  };
}

/** @returns the samples of all contestants, in their order */
function play(many, rounds) {
  return onStage(
    async (stage) => {
      const service = await stage.service();
      const load = await stage.load();
      const servers = new Map();
      const serverOf = (app, count) => {
        const key = `${app} ${count}`;
        if (!servers.has(key)) servers.set(key, startSeeded(stage, service.ready, app, count));
        return servers.get(key);
      };
      const contestants = await Promise.all(
        CONTESTANTS.map(async ({ app, isMany, isAnyUser }, index) => {
          const count = isMany ? many : FEW;
          const { server, heapBytes } = await serverOf(app, count);
          const users = isAnyUser ? count : ACTIVE_USERS;
          return { name: String(index), measure: async () => ({ heapBytes, ...(await roundOf(server, load, users)) }) };
        }),
      );
      await inTurns(contestants, 5);
      const samples = await inTurns(contestants, rounds);
      return contestants.map(({ name }) => samples[name]);
    },
    { pinned: true },
  );
}

/** What seeding has left behind is collected before anything is measured: it is no matter of the grants. */
async function startSeeded(stage, service, app, count) {
  const server = await stage.appWithGc({ app, service });
  await server.ask('seed', { from: 1, to: count, chars: ENTRY_CHARS });
  const { heapBytes } = await server.ask('memory', { collections: 1 });
  return { server, heapBytes };
}

async function roundOf(server, load, users) {
  const task = { ports: [server.ready.port], path: '/', requests: REQUESTS, connections: CONNECTIONS, users };
  await server.ask('startGc');
  const sample = await measured(server, REQUESTS, () => load.ask('run', task), 200);
  return { ...sample, gc: await server.ask('stopGc') };
}

function figuresOf(samples) {
  const collections = samples.map(({ gc }) => gc);
  const sumOf = (figure) => collections.reduce((sum, gc) => sum + gc[figure], 0);
  const pausesUs = interval(collections.map(({ pauseUs }) => pauseUs / REQUESTS));
  return {
    cpuUs: interval(samples.map(({ cpuUs }) => cpuUs)),
    p50Ms: median(samples.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(samples.map(({ p99Ms }) => p99Ms)),
    heapBytes: mean(samples.map(({ heapBytes }) => heapBytes)),
    pausesUs,
    youngMs: sumOf('youngUs') / 1000 / sumOf('young'),
    full: sumOf('full'),
    requestsMeasured: samples.length * REQUESTS,
  };
}

/** Of the means: a collection of the whole heap falls into some rounds alone, and belongs to the cost of all. */
function ratioOf(samples, base) {
  const pairs = samples.map((sample, index) => [sample.cpuUs, base[index].cpuUs]);
  const quotient = (drawn) => mean(drawn.map(([own]) => own)) / mean(drawn.map(([, few]) => few));
  return interval(pairs, quotient);
}
