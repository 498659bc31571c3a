import { readFileSync } from 'node:fs';
import { trialOfSeed } from './chance.js';
import { type Load, packageLoader } from './environment.js';
import {
  type Exploration,
  exploreFreezes,
  explorePlaces,
  exploreSeeds,
  findMutation,
  type Hit,
  parsePlaced,
  playPlaced,
} from './explore.js';
import { MUTATIONS, type Mutation } from './mutations.js';
import { SCENARIO_OF_PAIRS } from './scenarios.js';
import { MODES, type Mode } from './service.js';
import type { Lack } from './store-client.js';
import { describe, emptyTally, merge, type Tally } from './tally.js';
import { runTrial, type TrialResult } from './trial.js';

/** What the command asks a thread for. */
export interface Task {
  readonly packageFile: string;
  /** An earlier commit, that every other process has. */
  readonly besideFile: string | undefined;
  readonly lacks: Lack | undefined;
  readonly share: number;
  readonly shares: number;
  readonly mode: Mode | undefined;
  readonly from: number;
  readonly seeds: number;
  readonly depth: 0 | 1 | 2;
  readonly scenario: string | undefined;
  readonly seed: number | undefined;
  readonly faults: readonly string[];
  readonly mutation: string | undefined;
  readonly isEachMode: boolean;
  /** Whether to search over the lengths of freezes. */
  readonly isFrozen: boolean;
  /** Whether to look for a trial that shows each mutation. */
  readonly isMutated: boolean;
}

/** What a thread answers: a summary, or the trace of one trial. */
export interface Answer {
  readonly tally: Tally;
  readonly text?: string;
  /** For each mutation, the trial that shows it. */
  readonly found?: Readonly<Record<string, Hit | undefined>>;
}

/** Does what the command asks for. */
export async function perform(task: Task): Promise<Answer> {
  // Nobody reads the stacks of errors here, and there are many.
  Error.stackTraceLimit = 0;
  const own = packageLoader(readFileSync(task.packageFile, 'utf8'), task.packageFile);
  const { besideFile } = task;
  const beside = besideFile === undefined ? own : packageLoader(readFileSync(besideFile, 'utf8'), besideFile);
  const load: Load = (machine, place) => (place % 2 === 0 ? own : beside)(machine, place);
  const mutation = task.mutation === undefined ? undefined : mutationOf(task.mutation);
  const modes = task.mode === undefined ? MODES : [task.mode];
  const { share, shares, isEachMode, lacks } = task;
  const exploration: Exploration = { load, modes, mutation, share, shares, isEachMode, lacks };
  if (task.seed !== undefined)
    return show(await runTrial({ ...trialOfSeed(task.seed, task.mode, lacks), load, mutation, isTraced: true }));
  if (task.isFrozen) return { tally: await exploreFreezes(exploration, task.scenario ?? SCENARIO_OF_PAIRS) };
  if (task.faults.length > 0 || (task.scenario !== undefined && task.depth === 0)) {
    const placed = task.faults.map(parsePlaced);
    return show(await playPlaced(exploration, task.scenario ?? '', task.mode ?? 'revoke', placed, true));
  }
  if (task.isMutated) return { tally: emptyTally(), found: await findMutations(exploration) };
  const tally = emptyTally();
  if (task.depth > 0) merge(tally, await explorePlaces(exploration, task.depth === 2 ? 2 : 1, task.scenario));
  if (task.seeds > 0) merge(tally, await exploreSeeds(exploration, task.from, task.seeds));
  return { tally };
}

/** Seeds that are tried for a mutation before single faults are. */
const SEEDS_OF_MUTATION = 8;

async function findMutations(exploration: Exploration): Promise<Record<string, Hit | undefined>> {
  const found: Record<string, Hit | undefined> = {};
  for (const [index, mutation] of MUTATIONS.entries()) {
    if (index % exploration.shares !== exploration.share) continue;
    found[mutation.name] = await findMutation(exploration, mutation, SEEDS_OF_MUTATION);
  }
  return found;
}

function mutationOf(name: string): Mutation {
  const mutation = MUTATIONS.find((known) => known.name === name);
  if (mutation) return mutation;
  throw new Error(`--mutation: expected one of ${MUTATIONS.map((known) => known.name).join(', ')}, got ${name}`);
}

function show({ lines, violations, losses, digest }: TrialResult): Answer {
  const ends = violations.map(({ invariant, detail }) => `violation: ${invariant}: ${detail}`);
  const text = [...lines, ...ends, ...losses.map((loss) => `lost: ${loss}`), `digest: ${digest.toString(16)}`].join(
    '\n',
  );
  return { tally: emptyTally(), text };
}

export { describe, emptyTally, merge };
