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

/** CPU of a request where the token store in memory holds a thousand grants, and a million: processes of both, side by side. */
export async function grants({ starts, rounds, quick }) {
  const many = quick ? MANY / 20 : MANY;
  const plays = { few: [], many: [], fewAnyUser: [], manyAnyUser: [] };
  // Each start seeds a million grants: fewer starts, and more rounds.
  for (let start = 0; start < Math.ceil(starts / 5); start += 1) {
    const samples = await play(many, quick ? rounds : ROUNDS);
    for (const [name, own] of Object.entries(samples)) plays[name].push(...own);
  }
  const ratioTo = (name) => ratioOf(plays[name], plays.few);
  return {
    title: 'A thousand and a million grants in the token store in memory',
    rows: [
      row(FEW, 'of 1,000 users', plays.few, ratioTo('few')),
      row(many, 'of 1,000 users', plays.many, ratioTo('many')),
      row(FEW, 'of any user', plays.fewAnyUser, ratioTo('fewAnyUser')),
      row(many, 'of any user', plays.manyAnyUser, ratioTo('manyAnyUser')),
    ],
  };
}

function play(many, rounds) {
  return onStage(
    async (stage) => {
      const service = await stage.service();
      const load = await stage.load();
      const contestants = (
        await Promise.all([
          enter(stage, load, service.ready, FEW, ['few', 'fewAnyUser']),
          enter(stage, load, service.ready, many, ['many', 'manyAnyUser']),
        ])
      ).flat();
      await inTurns(contestants, 5);
      return await inTurns(contestants, rounds);
    },
    { pinned: true },
  );
}

async function enter(stage, load, service, count, [active, anyUser]) {
  const server = await stage.app({ app: 'keyed', service });
  await server.ask('seed', { from: 1, to: count });
  const task = { ports: [server.ready.port], path: '/', requests: REQUESTS, connections: CONNECTIONS };
  const measure = (users) => () => measured(server, REQUESTS, () => load.ask('run', { ...task, users }), 200);
  return [
    { name: active, measure: measure(ACTIVE_USERS) },
    { name: anyUser, measure: measure(count) },
  ];
}

function row(count, requests, samples, ratio) {
  return {
    grants: count,
    requests,
    cpuUs: interval(samples.map(({ cpuUs }) => cpuUs)),
    p50Ms: median(samples.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(samples.map(({ p99Ms }) => p99Ms)),
    cpuRatio: ratio,
  };
}

/** Of the means: a collection of the whole heap falls into some rounds alone, and belongs to the cost of all. */
function ratioOf(samples, base) {
  const pairs = samples.map((sample, index) => [sample.cpuUs, base[index].cpuUs]);
  const quotient = (drawn) => mean(drawn.map(([own]) => own)) / mean(drawn.map(([, few]) => few));
  return interval(pairs, quotient);
}
