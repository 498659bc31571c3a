import { type Clocks, type Cut, type Fault, faultsOf, type Way } from './faults.js';
import { Random } from './random.js';
import { SCENARIO_OF_CROWD, SCENARIOS } from './scenarios.js';
import { MODES, type Mode } from './service.js';
import type { Lack } from './store-client.js';
import type { Scenario, Stage, TrialOptions } from './trial.js';

const SECOND = 1000;

const FIRST_KEY = 'the first of the keys of this application';
const NEXT_KEY = 'the next of the keys of this application';
const USERS = ['ada', 'Ada', 'ben', 'cal', 'dee', 'eve', 'fay', 'gus', 'hal', 'ivy'];

/** Every so many seeds play a morning: it has as many users as they have together. */
const MORNING_EVERY = 50;

/** What a seed stands for: users, requests, logins, logouts, deployments, new keys and faults by chance. */
export function trialOfSeed(
  seed: number,
  mode?: Mode,
  lacks?: Lack,
): Pick<TrialOptions, 'scenario' | 'mode' | 'seed' | 'faultAt'> {
  const random = new Random(seed, 'scenario');
  const machines = ['A', 'B', 'C', 'D'].slice(0, 2 + random.below(3));
  const users = USERS.slice(0, random.chance(0.05) ? USERS.length : 1 + random.below(3));
  const healMs = random.between(240, 720) * SECOND;
  const slowness = random.pick([1, 1, 3, 20]);
  const rotates = random.chance(0.1);
  // Of their own, so that a seed stands for the same users and requests as before.
  const life = new Random(seed, 'life of grants');
  const organizations = life.chance(0.3) ? ['acme', 'globex'].slice(0, 1 + life.below(2)) : [];
  const ofUsers: Scenario = {
    machines,
    users,
    lacks,
    revokes: life.chance(0.5),
    organizations,
    ...(rotates && { encryptionKeys: [FIRST_KEY] }),
    lifetimeS: random.pick([60, 120, 240, 600]),
    healMs,
    latency: (messages) => slowness * random1(messages),
    play: (stage) => {
      play(stage, random, { machines, users, healMs });
      work(stage, life, { machines, organizations, healMs });
      if (rotates) rotateKeys(stage, machines, healMs);
    },
  };
  const crowd = seed % MORNING_EVERY === 0 ? SCENARIOS[SCENARIO_OF_CROWD] : undefined;
  const scenario = crowd ? { ...crowd, lacks } : ofUsers;
  const faults = new Random(seed, 'faults');
  const rate = random.pick([0, 0.002, 0.01, 0.03, 0.1]);
  const faultAt: TrialOptions['faultAt'] = ({ target, op }) => {
    if (!faults.chance(rate)) return undefined;
    const fault = faults.pick(faultsOf(target));
    // What ends every login at once leaves nothing to be watched: seldom.
    if (endsLogins(fault) && !faults.chance(0.1)) return undefined;
    // A status of the API is the API's own matter.
    return op === 'api' && (fault.kind === 'status' || fault.kind === 'damage') ? undefined : shorter(fault, faults);
  };
  return { scenario, seed, faultAt, mode: mode ?? MODES[seed % MODES.length] ?? 'revoke' };
}

/** Most messages take a millisecond or two, a few a hundred times as long. */
function random1(messages: Random): number {
  return messages.chance(0.01) ? messages.between(2, 200) : messages.between(0.3, 2);
}

function endsLogins(fault: Fault): boolean {
  return fault.kind === 'evict' ? fault.what === 'record' : fault.kind === 'failover' && fault.ms > 3600 * SECOND;
}

/** Varies how long a fault lasts. */
function shorter(fault: Fault, random: Random): Fault {
  if (!('ms' in fault) || fault.kind === 'jump' || fault.kind === 'failover') return fault;
  return { ...fault, ms: fault.ms * random.pick([0.02, 0.2, 1, 1]) };
}

interface Cast {
  readonly machines: readonly string[];
  readonly users: readonly string[];
  readonly healMs: number;
}

function play(stage: Stage, random: Random, { machines, users, healMs }: Cast): void {
  for (const user of users) {
    stage.at(random.between(0, 5 * SECOND), () => stage.login(random.pick(machines), user));
    const everyMs = random.pick([2, 5, 15]) * SECOND;
    for (let time = 6 * SECOND; time < healMs; time += random.between(0, 2 * everyMs)) {
      // Pages load several things at once.
      const at = time;
      for (let count = random.pick([1, 1, 1, 3]); count > 0; count -= 1)
        stage.at(at + random.between(0, 10), () => stage.request(random.pick(machines), user));
    }
    for (let count = random.pick([0, 0, 1, 2]); count > 0; count -= 1) {
      const time = random.between(10 * SECOND, healMs);
      const machine = random.pick(machines);
      if (random.chance(0.5)) stage.at(time, () => stage.logout(machine, user));
      const backMs = random.pick([0.01, 5, 60]) * SECOND;
      stage.at(time + backMs, () => stage.login(random.pick(machines), user));
    }
  }
  for (let count = random.pick([0, 0, 1, 2, 4]); count > 0; count -= 1) {
    const time = random.between(5 * SECOND, healMs - 60 * SECOND);
    const name = random.pick(machines);
    const trouble = troubleOf(random);
    stage.at(time, () => {
      const machine = stage.machine(name);
      if (machine) trouble(stage, machine);
    });
  }
}

/** Jobs of the organizations, often in all processes at once, and the nightly job, of some processes at a time. */
function work(
  stage: Stage,
  random: Random,
  { machines, organizations, healMs }: Omit<Cast, 'users'> & Required<Pick<Scenario, 'organizations'>>,
): void {
  for (const organization of organizations) {
    const everyMs = random.pick([5, 20]) * SECOND;
    for (let time = random.between(0, 10 * SECOND); time < healMs; time += random.between(0, 2 * everyMs)) {
      const at = time;
      for (const machine of random.chance(0.3) ? machines : [random.pick(machines)])
        stage.at(at + random.between(0, 10), () => stage.job(machine, organization));
    }
    for (let count = random.below(3); count > 0; count -= 1)
      stage.at(random.between(0, healMs), () => stage.world.service.refuse(organization));
  }
  for (let count = random.pick([0, 0, 1, 2]); count > 0; count -= 1) {
    const at = random.between(0, healMs - 60 * SECOND);
    for (const machine of machines)
      if (random.chance(0.7)) stage.at(at + random.between(0, 200), () => stage.keepAlive(machine));
  }
}

/**
 * One process after the other is replaced: by one that knows the next key, then by one that encrypts with it. As the documents
 * ask, the second deployment waits for the end of the first one, however long a process stands still.
 */
function rotateKeys(stage: Stage, machines: readonly string[], healMs: number): void {
  const encryptWithNext = (name: string): void => {
    if (stage.hasKeyEverywhere(NEXT_KEY)) stage.deploy(name, [NEXT_KEY, FIRST_KEY]);
    else stage.at(stage.world.scheduler.now + 5 * SECOND, () => encryptWithNext(name));
  };
  for (const [place, name] of machines.entries()) {
    stage.at(healMs / 4 + place * 5 * SECOND, () => stage.deploy(name, [FIRST_KEY, NEXT_KEY]));
    stage.at(healMs / 2 + place * 5 * SECOND, () => encryptWithNext(name));
  }
}

type Trouble = (stage: Stage, machine: NonNullable<ReturnType<Stage['machine']>>) => void;

/** Something that happens to a process at any moment, not to one of its calls. */
function troubleOf(random: Random): Trouble {
  const ms = random.pick([1, 8, 20, 45]) * SECOND;
  const cut = random.pick<Cut>(['refuse', 'lose', 'hold']);
  const clocks = random.pick<Clocks>(['stop', 'stop', 'suspend']);
  const jumpMs = random.pick([-3600, -60, -10, 10, 60, 3600]) * SECOND;
  const way: Way = 'answer';
  return random.pick<Trouble>([
    ({ world }, machine) => world.freeze(machine, { kind: 'freeze', way, clocks, ms }),
    ({ world }, machine) => world.crash(machine, ms),
    ({ world }, machine) => world.cut(machine, 'store', cut, ms),
    ({ world }, machine) => world.cut(machine, 'service', cut, ms),
    ({ world }) => world.cut(undefined, 'store', cut, ms),
    ({ world }) => world.cut(undefined, 'service', cut, ms),
    (_, machine) => machine.jump(jumpMs),
  ]);
}
