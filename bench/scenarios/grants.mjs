import { onStage } from '../lib/stage.mjs';
import { inTurns, measured, summary } from '../lib/starts.mjs';
import { interval, mean } from '../lib/statistics.mjs';

const FEW = 1_000;
const MANY = 1_000_000;
/** All of them are found in the cache, however many grants there are. */
const ACTIVE_USERS = 1_000;
const REQUESTS = 1_000;
/** Enough rounds for several collections of the whole heap: each takes long with a million grants. */
const ROUNDS = 16;

const OURS = { program: 'passport-oauth-app', app: 'keyed' };
const PLAIN = { program: 'a plain Map', app: 'mapped' };
/** Of an entry in the plain `Map`: makes it as large as a grant in the token store in memory. */
const ENTRY_CHARS = 1_070;

const CONTESTANTS = [
  { ...OURS, isMany: false, isAnyUser: false },
  { ...OURS, isMany: true, isAnyUser: false },
  { ...OURS, isMany: false, isAnyUser: true },
  { ...OURS, isMany: true, isAnyUser: true },
  { ...PLAIN, isMany: false, isAnyUser: false },
  { ...PLAIN, isMany: true, isAnyUser: false },
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
    const samples = await onStage((stage) => play(stage, many, quick ? rounds : ROUNDS), { pinned: true });
    for (const [index, own] of plays.entries()) own.push(...samples[index]);
  }
  const rows = CONTESTANTS.map(({ program, isMany, isAnyUser }, index) => ({
    program,
    grants: isMany ? many : FEW,
    requests: isAnyUser ? 'of any user' : 'of 1,000 users',
    ...summary(plays[index]),
    heapBytes: mean(plays[index].map(({ heapBytes }) => heapBytes)),
    cpuRatio: ratioOf(plays[index], plays[CONTESTANTS.findIndex((one) => one.program === program)]),
  }));
  return { title: 'A thousand and a million grants in the token store in memory', rows };
}

/** @returns the samples of all contestants, in their order */
async function play({ app, load }, many, rounds) {
  const servers = new Map();
  const contestants = [];
  for (const [index, { app: name, isMany, isAnyUser }] of CONTESTANTS.entries()) {
    const count = isMany ? many : FEW;
    const key = `${name} ${count}`;
    if (!servers.has(key)) servers.set(key, await startSeeded(app, name, count));
    const { server, heapBytes } = servers.get(key);
    const users = isAnyUser ? count : ACTIVE_USERS;
    const task = { ports: [server.ready.port], path: '/', requests: REQUESTS, connections: 32, users };
    const round = () => measured(server, REQUESTS, () => load.ask('run', task), 200);
    contestants.push({ name: String(index), measure: async () => ({ heapBytes, ...(await round()) }) });
  }
  const samples = await inTurns(contestants, rounds, 5);
  return contestants.map(({ name }) => samples[name]);
}

/** What seeding has left behind is collected before anything is measured: it is no matter of the grants. */
async function startSeeded(app, name, count) {
  const server = await app({ app: name });
  await server.ask('seed', { from: 1, to: count, chars: ENTRY_CHARS });
  const { heapBytes } = await server.ask('memory', { collections: 1 });
  return { server, heapBytes };
}

/** Of the means: a collection of the whole heap falls into some rounds alone, and belongs to the cost of all. */
function ratioOf(samples, base) {
  const pairs = samples.map((sample, index) => [sample.cpuUs, base[index].cpuUs]);
  const quotient = (drawn) => mean(drawn.map(([own]) => own)) / mean(drawn.map(([, few]) => few));
  return interval(pairs, quotient);
}
