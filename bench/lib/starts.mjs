import { onStage } from './stage.mjs';
import { interval, mean, median, ratio } from './statistics.mjs';

/**
 * @typedef {object} Sample What one contestant did in one round.
 * @property {number} perSecond
 * @property {number} cpuUs of the measured process, for one request
 * @property {number} [p50Ms]
 * @property {number} [p99Ms]
 *
 * @typedef {{ name: string, measure: () => Promise<Sample> }} Contestant
 */

/** A comparison takes no longer, so that the whole command keeps its time on a slow machine; but a few starts there must be. */
const MOST_SECONDS = 165;
const FEWEST_STARTS = 4;
const USERS = 20;

/**
 * Plays contestants several times, each time with processes started anew: two processes of one program differ by several percent
 * for as long as they live.
 *
 * @param {{ starts: number, rounds: number, warmUps?: number }} settings
 * @param {(stage: any) => Promise<Contestant[]>} cast starts the processes of one play
 * @returns {Promise<Record<string, Sample[][]>>} by name: for each start, its rounds
 */
export async function fromTheStart({ starts, rounds, warmUps = 8 }, cast) {
  const plays = {};
  const since = performance.now();
  const isLate = () => performance.now() - since > MOST_SECONDS * 1000;
  for (let start = 0; start < starts && !(start >= FEWEST_STARTS && isLate()); start += 1) {
    const play = async (stage) => inTurns(await cast(stage), rounds, warmUps);
    const samples = await onStage(play, { pinned: true });
    for (const [name, own] of Object.entries(samples)) plays[name] = [...(plays[name] ?? []), own];
  }
  return plays;
}

/** Measures contestants in turn, round after round, each round in a random order: a disturbance of the machine hits all of them. */
export async function inTurns(contestants, rounds, warmUps = 2) {
  const samples = Object.fromEntries(contestants.map(({ name }) => [name, []]));
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const { name, measure } of shuffled(contestants)) {
      const sample = await measure();
      if (round >= 0) samples[name].push(sample);
    }
  }
  return samples;
}

/** Plays applications against each other: rounds of one request each, of users who have logged in. */
export function playApps(settings, contestants, round, start = startApp) {
  const enter = async (stage, one) => ({
    name: one.name,
    measure: await roundOf(await start(stage, one), stage.load, round),
  });
  return fromTheStart(settings, (stage) => Promise.all(contestants.map((one) => enter(stage, one))));
}

function startApp({ app }, { name, ...options }) {
  return app(options);
}

/** One round of an application: requests of users who have logged in. @returns {Promise<() => Promise<Sample>>} */
export async function roundOf(server, load, { path, requests, connections }) {
  const { port } = server.ready;
  const headers = (await load.ask('logIns', { port, users: USERS })).map((Cookie) => ({ Cookie }));
  const task = { ports: [port], path, headers, requests, connections };
  return () => measured(server, requests, () => load.ask('run', task), 200);
}

/** By chance, and not by rotation: nobody is to have the same one before it in every round. */
function shuffled(list) {
  return list
    .map((one) => ({ one, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one);
}

/**
 * One row for each contestant: its figures, and what it is against the baseline in the same starts.
 *
 * @param {Record<string, Sample[][]>} plays
 * @param {string} baseline name of a contestant
 */
export function compared(plays, baseline) {
  const base = plays[baseline];
  return Object.entries(plays).map(([name, own]) => ({
    name,
    starts: own.length,
    perSecond: interval(own.map(perSecond)),
    cpuUs: interval(own.map(cpuUs)),
    p50Ms: median(own.flatMap((rounds) => rounds.map(({ p50Ms }) => p50Ms))),
    p99Ms: median(own.flatMap((rounds) => rounds.map(({ p99Ms }) => p99Ms))),
    throughputRatio: ratio(own.map(perSecond), base.map(perSecond)),
    cpuRatio: ratio(own.map(cpuUs), base.map(cpuUs)),
  }));
}

/** The figures of rounds that were played in one start. @param {Sample[]} rounds */
export function summary(rounds) {
  const of = (name) => rounds.map((one) => one[name]);
  return {
    perSecond: interval(of('perSecond')),
    cpuUs: interval(of('cpuUs')),
    p50Ms: median(of('p50Ms')),
    p99Ms: median(of('p99Ms')),
  };
}

/** Requests in the time that all rounds of a start took. */
function perSecond(rounds) {
  return 1 / mean(rounds.map((round) => 1 / round.perSecond));
}

function cpuUs(rounds) {
  return mean(rounds.map((round) => round.cpuUs));
}

/**
 * Makes a task's requests and says what they cost the process that served them.
 *
 * @param {Pick<import('./child.mjs').Child, 'ask'>} served
 * @param {number} requests
 * @param {() => Promise<{ durationMs: number, statuses: Record<string, number>, p50Ms: number, p99Ms: number }>} work
 * @param {number} [expected] the status that all answers must have
 * @returns {Promise<Sample>}
 */
export async function measured(served, requests, work, expected) {
  const before = await served.ask('usage');
  const { durationMs, statuses, p50Ms, p99Ms } = await work();
  const after = await served.ask('usage');
  if (expected !== undefined && statuses[expected] !== requests) {
    throw new Error(`Expected ${requests} answers with ${expected}, got ${JSON.stringify(statuses)}`);
  }
  return {
    perSecond: (requests / durationMs) * 1000,
    cpuUs: (after.cpuUs - before.cpuUs) / requests,
    p50Ms,
    p99Ms,
  };
}
