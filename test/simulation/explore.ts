import { trialOfSeed } from './chance.js';
import { describeFault, type Fault, faultsOf, freezes, type Target } from './faults.js';
import type { Mutation } from './mutations.js';
import { SCENARIO_OF_CROWD, SCENARIO_OF_PAIRS, SCENARIOS } from './scenarios.js';
import type { Mode } from './service.js';
import type { Lack } from './store-client.js';
import { count, emptyTally, type Tally } from './tally.js';
import { runTrial, type TrialOptions, type TrialResult } from './trial.js';

/** What all explorations are given. */
export interface Exploration {
  readonly load: TrialOptions['load'];
  readonly modes: readonly Mode[];
  readonly mutation?: Mutation | undefined;
  /** What the token store lacks. */
  readonly lacks?: Lack | undefined;
  /** Of all that is to be done, every `shares`-th, from `share` on. */
  readonly share: number;
  readonly shares: number;
  /** Whether to play a trial in each mode even where it goes the same in all of them. */
  readonly isEachMode: boolean;
}

/** A fault at the call of that number. */
export interface Placed {
  readonly index: number;
  readonly fault: Fault;
}

/** One trial to play, and the options that show it again. */
interface Play {
  readonly example: string;
  readonly run: (mutation: Mutation | undefined) => Promise<TrialResult>;
}

/** A trial that stands for some modes. */
interface Played {
  readonly modes: readonly Mode[];
  readonly result: TrialResult;
}

/** Plays seeds. */
export async function exploreSeeds(exploration: Exploration, from: number, seeds: number): Promise<Tally> {
  const tally = emptyTally();
  const { share, shares, mutation } = exploration;
  for (let seed = from + share; seed < from + seeds; seed += shares) {
    const mode = modeOfSeed(exploration, seed);
    const { example, run } = playOfSeed(exploration, seed);
    count(tally, [mode], await run(mutation), () => example);
  }
  return tally;
}

/** Plays the scenarios with every single fault, or with every pair of faults. */
export async function explorePlaces(exploration: Exploration, depth: 1 | 2, only?: string): Promise<Tally> {
  const tally = emptyTally();
  const { share, shares } = exploration;
  // The same place is in the same share in each mode.
  const isMine = (turn: number) => turn % shares === share;
  const add = (name: string, placed: readonly Placed[], { modes, result }: Played) =>
    count(tally, modes, result, (mode) => exampleOf(name, mode, placed));
  for (const name of scenarioNames(only ?? (depth === 2 ? SCENARIO_OF_PAIRS : undefined))) {
    for (const plain of await playInModes(exploration, exploration.modes, name, [])) {
      if (isMine(0)) add(name, [], plain);
      for (const [position, first] of placesOf(plain.result, 0).entries()) {
        if (!isMine(position + 1)) continue;
        for (const single of await playInModes(exploration, plain.modes, name, [first])) {
          add(name, [first], single);
          for (const second of depth === 2 ? placesOf(single.result, first.index) : [])
            for (const pair of await playInModes(exploration, single.modes, name, [first, second]))
              add(name, [first, second], pair);
        }
      }
    }
  }
  return tally;
}

/** What a second process meets while the first one stands still: a token endpoint that takes its time. */
const SLOW: Fault = { kind: 'slow', way: 'answer', ms: 3000 };

/** Plays a scenario with freezes of every length at every call: alone, and with each later refresh taking its time. */
export async function exploreFreezes(exploration: Exploration, name: string): Promise<Tally> {
  const tally = emptyTally();
  const { share, shares } = exploration;
  const play = async (modes: readonly Mode[], placed: readonly Placed[]) => {
    const played = await playInModes(exploration, modes, name, placed);
    for (const { modes: same, result } of played) count(tally, same, result, (mode) => exampleOf(name, mode, placed));
    return played;
  };
  for (const plain of await playInModes(exploration, exploration.modes, name, [])) {
    for (const [turn, first] of placesOf(plain.result, 0, freezes).entries()) {
      if (turn % shares !== share) continue;
      for (const { modes, result } of await play(plain.modes, [first])) {
        const slow = placesOf(result, first.index, () => [SLOW]);
        for (const second of slow.filter(({ index }) => result.steps[index - 1]?.op === 'refresh'))
          await play(modes, [first, second]);
      }
    }
  }
  return tally;
}

/** Plays a scenario with these faults, in each mode, or once where it goes the same in all of them. */
async function playInModes(
  exploration: Exploration,
  modes: readonly Mode[],
  name: string,
  placed: readonly Placed[],
): Promise<readonly Played[]> {
  const played: Played[] = [];
  for (const mode of modes) {
    const result = await playPlaced(exploration, name, mode, placed);
    // Grace shows no token that the other modes would call used.
    const isFirst = played.length === 0 && mode !== 'grace';
    if (isFirst && result.isSameInAllModes && !exploration.isEachMode) return [{ modes, result }];
    played.push({ modes: [mode], result });
  }
  return played;
}

/** A trial that shows a mutation. */
export interface Hit {
  readonly example: string;
  /** What the mutation has violated, each invariant once. */
  readonly invariants: readonly string[];
  /** How many trials were played until then, this one included. */
  readonly trials: number;
}

/** Returns the first trial that the mutation spoils, and that goes well without it: of some seeds, then of every single fault. */
export async function findMutation(
  exploration: Exploration,
  mutation: Mutation,
  seeds: number,
): Promise<Hit | undefined> {
  let trials = 0;
  for await (const { example, run } of playsOfMutation(exploration, mutation, seeds)) {
    trials += 1;
    const { violations } = await run(mutation);
    if (violations.length === 0 || (await run(undefined)).violations.length > 0) continue;
    return { example, trials, invariants: [...new Set(violations.map(({ invariant }) => invariant))] };
  }
  return undefined;
}

/** What shows the mutation; else random histories, then the short scenarios first, and the mode in which a mistake costs most. */
async function* playsOfMutation(
  exploration: Exploration,
  { shownBy, shownIn = 'revoke' }: Mutation,
  seeds: number,
): AsyncGenerator<Play> {
  if (shownBy) return yield* singles(exploration, SCENARIO_OF_PAIRS, shownIn, () => [shownBy]);
  for (let seed = 1; seed <= seeds; seed += 1) yield playOfSeed(exploration, seed);
  for (const name of ['logouts', 'brief', 'rotations'])
    for (const mode of ['revoke', 'refuse', 'grace'] as const) yield* singles(exploration, name, mode);
}

/** Plays a scenario with these faults. */
export function playPlaced(
  { load, mutation, lacks }: Pick<Exploration, 'load' | 'mutation' | 'lacks'>,
  name: string,
  mode: Mode,
  placed: readonly Placed[],
  isTraced = false,
): Promise<TrialResult> {
  const scenario = SCENARIOS[name];
  if (!scenario) throw new Error(`scenario: expected ${Object.keys(SCENARIOS).join(' or ')}, got ${name}`);
  const faultAt: TrialOptions['faultAt'] = ({ index }) => placed.find((place) => place.index === index)?.fault;
  return runTrial({ scenario: { ...scenario, lacks }, mode, seed: 1, load, mutation, faultAt, isTraced });
}

/**
 * Returns every place for a fault after the call of number `after`, up to the end of faults. No places are calls of the API,
 * and all but the first tries for a lock that somebody else has: there are hundreds, one like the other.
 */
function placesOf(
  { steps, faultySteps }: TrialResult,
  after: number,
  faultsFor: (target: Target) => readonly Fault[] = faultsOf,
): readonly Placed[] {
  return steps.slice(0, faultySteps).flatMap(({ target, op }, position) => {
    const index = position + 1;
    const isOneMoreTry =
      op === 'take' && steps.slice(Math.max(0, position - 3), position).every((step) => step.op === 'take');
    if (index <= after || op === 'api' || (isOneMoreTry && position > 2)) return [];
    return faultsFor(target).map((fault) => ({ index, fault }));
  });
}

function modeOfSeed({ modes }: Exploration, seed: number): Mode {
  return modes[seed % modes.length] ?? 'revoke';
}

function playOfSeed(exploration: Exploration, seed: number): Play {
  const mode = modeOfSeed(exploration, seed);
  const { load, lacks } = exploration;
  const run = (mutation: Mutation | undefined) => runTrial({ ...trialOfSeed(seed, mode, lacks), load, mutation });
  return { example: `--seed ${seed} --mode ${mode}`, run };
}

function scenarioNames(only: string | undefined): readonly string[] {
  return only === undefined ? Object.keys(SCENARIOS).filter((name) => name !== SCENARIO_OF_CROWD) : [only];
}

/** A scenario without a fault, and with each single one. */
async function* singles(
  exploration: Exploration,
  name: string,
  mode: Mode,
  faultsFor?: (target: Target) => readonly Fault[],
): AsyncGenerator<Play> {
  const plain = playOf(exploration, name, mode, []);
  yield plain;
  for (const place of placesOf(await plain.run(undefined), 0, faultsFor))
    yield playOf(exploration, name, mode, [place]);
}

function playOf(exploration: Exploration, name: string, mode: Mode, placed: readonly Placed[]): Play {
  const run = (mutation: Mutation | undefined) => playPlaced({ ...exploration, mutation }, name, mode, placed);
  return { example: exampleOf(name, mode, placed), run };
}

/** Reads places as {@link exampleOf} writes them: `12:crash-leave-2000`. Its number may be any other one. */
export function parsePlaced(text: string): Placed {
  const [index, name = ''] = text.split(':');
  const ms = Number(/-(-?\d+)$/.exec(name)?.[1]);
  const fault = [...faultsOf('store'), ...faultsOf('service'), ...freezes()]
    .map((known) => ('ms' in known && known.kind !== 'jump' && ms > 0 ? { ...known, ms } : known))
    .find((known) => describeFault(known) === name);
  if (!fault) throw new Error(`--fault: expected CALL:FAULT, such as 12:crash-leave-2000, got ${text}`);
  return { index: Number(index), fault };
}

function exampleOf(name: string, mode: Mode, placed: readonly Placed[]): string {
  const faults = placed.map(({ index, fault }) => ` --fault ${index}:${describeFault(fault)}`);
  return `--scenario ${name} --mode ${mode}${faults.join('')}`;
}
