import { trialOfSeed } from './chance.js';
import { describeFault, type Fault, faultsOf } from './faults.js';
import type { Mutation } from './mutations.js';
import { SCENARIO_OF_PAIRS, SCENARIOS } from './scenarios.js';
import type { Mode } from './service.js';
import { count, emptyTally, type Tally } from './tally.js';
import { runTrial, type TrialOptions, type TrialResult } from './trial.js';

/** What all explorations are given. */
export interface Exploration {
  readonly load: TrialOptions['load'];
  readonly modes: readonly Mode[];
  readonly mutation?: Mutation | undefined;
  /** Of all that is to be done, every `shares`-th, from `share` on. */
  readonly share: number;
  readonly shares: number;
}

/** A fault at the call of that number. */
export interface Placed {
  readonly index: number;
  readonly fault: Fault;
}

/** One trial to play, and the options that show it again. */
interface Play {
  readonly scenario?: string;
  readonly placed?: readonly Placed[];
  readonly mode: Mode;
  readonly example: string;
  readonly run: (mutation: Mutation | undefined) => Promise<TrialResult>;
}

/** Plays seeds. */
export async function exploreSeeds(exploration: Exploration, from: number, seeds: number): Promise<Tally> {
  const tally = emptyTally();
  const { share, shares, mutation } = exploration;
  for (let seed = from + share; seed < from + seeds; seed += shares) {
    const { mode, example, run } = playOfSeed(exploration, seed);
    count(tally, mode, await run(mutation), example);
  }
  return tally;
}

/** Plays the scenarios with every single fault, or with every pair of faults. */
export async function explorePlaces(exploration: Exploration, depth: 1 | 2, only?: string): Promise<Tally> {
  const tally = emptyTally();
  const { share, shares, mutation } = exploration;
  let turn = 0;
  const name = only ?? (depth === 2 ? SCENARIO_OF_PAIRS : undefined);
  for await (const { scenario = '', placed = [], mode, example, run } of singles(exploration, name)) {
    turn += 1;
    if (turn % shares !== share) continue;
    const single = await run(mutation);
    count(tally, mode, single, example);
    const first = placed[0];
    if (depth === 1 || first === undefined) continue;
    for (const second of placesOf(single, first.index)) {
      const pair = playOf(exploration, scenario, mode, [first, second]);
      count(tally, mode, await pair.run(mutation), pair.example);
    }
  }
  return tally;
}

/** Returns a trial that the mutation spoils, and that goes well without it: some seeds are tried, then every single fault. */
export async function findMutation(
  exploration: Exploration,
  mutation: Mutation,
  seeds: number,
): Promise<string | undefined> {
  const isFound = async ({ run }: Play) =>
    (await run(mutation)).violations.length > 0 && (await run(undefined)).violations.length === 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const play = playOfSeed(exploration, seed);
    if (await isFound(play)) return play.example;
  }
  // The short scenarios first, and the mode in which a mistake costs most.
  for (const name of ['brief', 'logouts', 'rotations'])
    for (const mode of ['revoke', 'refuse', 'grace'] as const)
      for await (const play of singles({ ...exploration, modes: [mode] }, name))
        if (await isFound(play)) return play.example;
  return undefined;
}

/** Plays a scenario with these faults. */
export function playPlaced(
  { load, mutation }: Pick<Exploration, 'load' | 'mutation'>,
  name: string,
  mode: Mode,
  placed: readonly Placed[],
  isTraced = false,
): Promise<TrialResult> {
  const scenario = SCENARIOS[name];
  if (!scenario) throw new Error(`scenario: expected ${Object.keys(SCENARIOS).join(' or ')}, got ${name}`);
  const faultAt: TrialOptions['faultAt'] = ({ index }) => placed.find((place) => place.index === index)?.fault;
  return runTrial({ scenario, mode, seed: 1, load, mutation, faultAt, isTraced });
}

/**
 * Returns every place for a fault after the call of number `after`, up to the end of faults. No places are calls of the API,
 * and all but the first tries for a lock that somebody else has: there are hundreds, one like the other.
 */
function placesOf({ steps, faultySteps }: TrialResult, after: number): readonly Placed[] {
  return steps.slice(0, faultySteps).flatMap(({ target, op }, position) => {
    const index = position + 1;
    const isOneMoreTry =
      op === 'take' && steps.slice(Math.max(0, position - 3), position).every((step) => step.op === 'take');
    if (index <= after || op === 'api' || (isOneMoreTry && position > 2)) return [];
    return faultsOf(target).map((fault) => ({ index, fault }));
  });
}

function playOfSeed({ load, modes }: Exploration, seed: number): Play {
  const mode = modes[seed % modes.length] ?? 'revoke';
  const run = (mutation: Mutation | undefined) => runTrial({ ...trialOfSeed(seed, mode), load, mutation });
  return { mode, example: `--seed ${seed} --mode ${mode}`, run };
}

/** Every scenario without a fault, and with each single one. */
async function* singles(exploration: Exploration, only?: string): AsyncGenerator<Play> {
  for (const name of Object.keys(SCENARIOS).filter((known) => only === undefined || known === only)) {
    for (const mode of exploration.modes) {
      const plain = playOf(exploration, name, mode, []);
      yield plain;
      for (const place of placesOf(await plain.run(exploration.mutation), 0))
        yield playOf(exploration, name, mode, [place]);
    }
  }
}

function playOf(exploration: Exploration, name: string, mode: Mode, placed: readonly Placed[]): Play {
  const run = (mutation: Mutation | undefined) => playPlaced({ ...exploration, mutation }, name, mode, placed);
  return { scenario: name, placed, mode, example: exampleOf(name, mode, placed), run };
}

/** Reads places as {@link exampleOf} writes them: `12:crash-leave-2000`. */
export function parsePlaced(text: string): Placed {
  const [index, name] = text.split(':');
  const fault = [...faultsOf('store'), ...faultsOf('service')].find((known) => describeFault(known) === name);
  if (!fault) throw new Error(`--fault: expected CALL:FAULT, such as 12:crash-leave-2000, got ${text}`);
  return { index: Number(index), fault };
}

function exampleOf(name: string, mode: Mode, placed: readonly Placed[]): string {
  const faults = placed.map(({ index, fault }) => ` --fault ${index}:${describeFault(fault)}`);
  return `--scenario ${name} --mode ${mode}${faults.join('')}`;
}
