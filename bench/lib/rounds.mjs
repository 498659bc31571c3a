import { ratios, summary } from './statistics.mjs';

/**
 * @typedef {object} Sample What one contestant did in one round.
 * @property {number} perSecond
 * @property {number} cpuUs of the measured process, for one request
 * @property {number} [p50Ms]
 * @property {number} [p99Ms]
 */

/**
 * Measures contestants in turn, round after round, each round in a random order: what disturbs the machine disturbs all of them.
 *
 * @param {{ name: string, measure: () => Promise<Sample> }[]} contestants
 * @param {number} rounds
 * @returns {Promise<Record<string, Sample[]>>} samples by name
 */
export async function inTurns(contestants, rounds) {
  const samples = Object.fromEntries(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, measure } of shuffled(contestants)) samples[name].push(await measure());
  }
  return samples;
}

/** By chance, and not by rotation: nobody is to have the same one before it in every round. */
function shuffled(list) {
  return list
    .map((one) => ({ one, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one);
}

/** One row for each contestant: medians, and ratios to the baseline of the same rounds. */
export function compared(samples, baseline) {
  const base = samples[baseline];
  return Object.entries(samples).map(([name, own]) => ({
    name,
    perSecond: summary(own.map(({ perSecond }) => perSecond)),
    cpuUs: summary(own.map(({ cpuUs }) => cpuUs)),
    p50Ms: summary(own.map(({ p50Ms }) => p50Ms)).median,
    p99Ms: summary(own.map(({ p99Ms }) => p99Ms)).median,
    throughputRatio: ratios(own.map(perSecond), base.map(perSecond)),
    cpuRatio: ratios(own.map(cpuUs), base.map(cpuUs)),
  }));
}

/**
 * Makes a task's requests and says what they cost the process that served them.
 *
 * @param {import('./child.mjs').Child} served
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
  return { perSecond: (requests / durationMs) * 1000, cpuUs: (after.cpuUs - before.cpuUs) / requests, p50Ms, p99Ms };
}

function perSecond(sample) {
  return sample.perSecond;
}

function cpuUs(sample) {
  return sample.cpuUs;
}
