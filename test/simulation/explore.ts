import { trialOfSeed } from './chance.js';
import { describeFault, type Fault, faultsOf } from './faults.js';
import type { Mutation } from './mutations.js';
import { SCENARIOS } from './scenarios.js';
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
  /** Ends the exploration with the first violation. */
  readonly isFirstEnough?: boolean;
}

/** A fault at the call of that number. */
export interface Placed {
  readonly index: number;
  readonly fault: Fault;
}

/** Plays seeds. */
export async function exploreSeeds(exploration: Exploration, from: number, seeds: number): Promise<Tally> {
  const tally = emptyTally();
  const { load, mutation, modes, share, shares } = exploration;
  for (let seed = from + share; seed < from + seeds; seed += shares) {
    const mode = modes[seed % modes.length] ?? 'revoke';
    const result = await runTrial({ ...trialOfSeed(seed, mode), load, mutation });
    count(tally, mode, result, `--seed ${seed} --mode ${mode}`);
    if (exploration.isFirstEnough && tally.failed > 0) break;
  }
  return tally;
}

/** Plays the scenarios with every single fault, or with every pair of faults. */
export async function explorePlaces(exploration: Exploration, depth: 1 | 2, only?: string): Promise<Tally> {
  const tally = emptyTally();
  let turn = 0;
  for (const name of Object.keys(SCENARIOS).filter((known) => only === undefined || known === only)) {
    for (const mode of exploration.modes) {
      const plain = await playPlaced(exploration, name, mode, []);
      if (exploration.share === 0) count(tally, mode, plain, exampleOf(name, mode, []));
      for (const first of placesOf(plain, 0)) {
        turn += 1;
        if (turn % exploration.shares !== exploration.share) continue;
        const single = await playPlaced(exploration, name, mode, [first]);
        count(tally, mode, single, exampleOf(name, mode, [first]));
        if (exploration.isFirstEnough && tally.failed > 0) return tally;
        if (depth === 1) continue;
        for (const second of placesOf(single, first.index)) {
          const placed = [first, second];
          count(tally, mode, await playPlaced(exploration, name, mode, placed), exampleOf(name, mode, placed));
        }
      }
    }
  }
  return tally;
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

/** Returns every place for a fault after the call of number `after`, up to the end of faults; calls of the API are no places. */
function placesOf({ steps, faultySteps }: TrialResult, after: number): readonly Placed[] {
  return steps.slice(0, faultySteps).flatMap(({ target, op }, position) => {
    const index = position + 1;
    if (index <= after || op === 'api') return [];
    return faultsOf(target).map((fault) => ({ index, fault }));
  });
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
