import { subscribe } from 'node:diagnostics_channel';
import { Application, type Ending } from './application.js';
import { forgetSealed, type Load } from './environment.js';
import type { Step } from './exchange.js';
import type { Fault } from './faults.js';
import type { Machine } from './machine.js';
import type { Mutation } from './mutations.js';
import type { Loss, Violation } from './oracle.js';
import type { Random } from './random.js';
import type { GrantEvent } from './revocations.js';
import type { Mode } from './service.js';
import type { Lack } from './store-client.js';
import { type TokenWork, World } from './world.js';

/** What users do, and what goes wrong by itself, in a world. */
export interface Scenario {
  readonly machines: readonly string[];
  readonly users: readonly string[];
  readonly lifetimeS: number;
  /** When faults end, in milliseconds. */
  readonly healMs: number;
  readonly latency: (random: Random) => number;
  readonly tokenWork?: TokenWork | undefined;
  /** The option of the same name, until a process is replaced. */
  readonly encryptionKeys?: readonly string[];
  /** What the token store lacks. */
  readonly lacks?: Lack | undefined;
  /** Whether the service has a revocation endpoint. */
  readonly revokes?: boolean;
  /** What the application has grants of its own for. */
  readonly organizations?: readonly string[];
  /** Has it all happen, in time. */
  readonly play: (stage: Stage) => void;
}

/** Where a scenario is played. */
export interface Stage {
  readonly world: World;
  at(ms: number, act: () => void): void;
  request(machine: string, user: string): void;
  login(machine: string, user: string): void;
  logout(machine: string, user: string): void;
  /** Refreshes the grants of all users that are older than a minute. */
  keepAlive(machine: string): void;
  /** Has the application work as the organization. */
  job(machine: string, organization: string): void;
  machine(name: string): Machine | undefined;
  /** Replaces a process by one of the next release: it is closed first. Its keys, or those of the one before. */
  deploy(name: string, encryptionKeys?: readonly string[]): void;
  /** Whether all processes that run can read what is encrypted with the key. */
  hasKeyEverywhere(key: string): boolean;
}

/** How a trial is run. */
export interface TrialOptions {
  readonly scenario: Scenario;
  readonly mode: Mode;
  readonly seed: number;
  readonly load: Load;
  readonly faultAt: (step: Step, world: World) => Fault | undefined;
  readonly mutation?: Mutation | undefined;
  readonly isTraced?: boolean;
}

/** What a trial has shown. */
export interface TrialResult {
  readonly violations: readonly Violation[];
  /** Logins that ended though nobody could have kept them. */
  readonly losses: readonly Loss[];
  readonly reuses: number;
  /**
   * Whether the trial goes the same, and shows the same, in every mode. The modes differ only once a used refresh token is shown.
   * What grace honours beyond the others matters to the oracle alone, where somebody logs out, or is told to be logged out.
   */
  readonly isSameInAllModes: boolean;
  readonly events: number;
  readonly steps: readonly { readonly target: Step['target']; readonly op: string }[];
  /** How many of the steps came before the end of faults. */
  readonly faultySteps: number;
  readonly faults: readonly Fault[];
  /** Longest time that a request took in a process that ran, in milliseconds. */
  readonly slowestMs: number;
  readonly digest: number;
  readonly lines: readonly string[];
}

const SECOND = 1000;
/** Longest time that a request may take in a process that runs. */
const BOUND_MS = 60 * SECOND;
/** From the end of all faults until everything has come to rest. */
const REST_MS = 100 * SECOND;
const ROUNDS = 3;
const ROUND_MS = 40 * SECOND;
const CLOSE_MS = 60 * SECOND;
/**
 * For so long may timers run on that keep nothing alive, and for as long as the wall clock was set back: marks of used logins are
 * deleted when the logins have expired.
 */
const REMAINDER_MS = 3600 * SECOND;

/** Rejections that nobody has handled since the last look. */
let rejections: unknown[] = [];
process.on('unhandledRejection', (reason) => rejections.push(reason));

/** The world of the trial that runs. */
let observed: World | undefined;
subscribe('passport-oauth-app:grant', (event) => observed?.revocations.told(event as GrantEvent));

/** Plays a scenario, lets everything heal, and looks at what is left. */
export async function runTrial(options: TrialOptions): Promise<TrialResult> {
  rejections = [];
  forgetSealed();
  const trial = new Trial(options);
  observed = trial.world;
  return await trial.run().catch((error: unknown) => trial.fail(error));
}

class Trial implements Stage {
  readonly world: World;
  readonly #options: TrialOptions;
  readonly #applications = new Map<string, Application>();
  /** Those that died, too. */
  readonly #all: Application[] = [];
  readonly #steps: { target: Step['target']; op: string }[] = [];
  readonly #busy = new Set<string>();
  /** The keys of each process that was replaced. */
  readonly #keys = new Map<string, readonly string[]>();
  #slowestMs = 0;

  constructor(options: TrialOptions) {
    const { scenario, mode, seed } = options;
    this.#options = options;
    this.world = new World({
      seed,
      mode,
      lifetimeS: scenario.lifetimeS,
      latency: scenario.latency,
      tokenWork: scenario.tokenWork,
      isTraced: options.isTraced ?? false,
      lacks: scenario.lacks,
      revokes: scenario.revokes ?? false,
      organizations: scenario.organizations ?? [],
      faultAt: (step, world) => {
        this.#steps.push({ target: step.target, op: step.op });
        return options.faultAt(step, world);
      },
    });
    this.world.onCrash = (dead, restartMs) =>
      this.at(this.world.scheduler.now + restartMs, () => this.#start(dead.name.slice(0, 1)));
  }

  async run(): Promise<TrialResult> {
    const { scenario } = this.#options;
    const { scheduler, oracle } = this.world;
    for (const name of scenario.machines) this.#start(name);
    scenario.play(this);
    await scheduler.run(scenario.healMs);
    this.world.heal();
    const faultySteps = this.#steps.length;
    for (const name of scenario.machines) this.#start(name);
    await scheduler.run(scheduler.now + REST_MS / 2);
    for (const user of scenario.users) this.#everywhere((name) => this.request(name, user));
    await scheduler.run(scheduler.now + REST_MS / 2);
    await this.#lookAtLogins();
    await this.#lookAtOrganizations();
    await this.#close();
    this.world.revocations.check();
    // Node tells of unhandled rejections when the event loop turns.
    await new Promise((resolve) => setImmediate(resolve));
    for (const reason of rejections) oracle.violate('no rejection', String(reason));
    return this.#result(faultySteps);
  }

  /** A trial that could not be brought to its end. */
  fail(error: unknown): TrialResult {
    this.world.oracle.violate('settles', String(error));
    return this.#result(0);
  }

  #result(faultySteps: number): TrialResult {
    const { scheduler, oracle } = this.world;
    return {
      violations: oracle.violations,
      losses: oracle.losses,
      reuses: oracle.reuses,
      isSameInAllModes:
        oracle.reuses + oracle.violations.length + oracle.losses.length === 0 &&
        !oracle.hasLogouts &&
        !oracle.hasRefusals,
      events: scheduler.count,
      steps: this.#steps,
      faultySteps,
      faults: this.world.faults.map(({ fault }) => fault),
      slowestMs: this.#slowestMs,
      digest: this.world.digest,
      lines: this.world.lines,
    };
  }

  at(ms: number, act: () => void): void {
    this.world.scheduler.at(ms, act);
  }

  machine(name: string): Machine | undefined {
    return this.#applications.get(name)?.machine;
  }

  request(name: string, user: string): void {
    this.#within(name, (application) => application.request(user));
  }

  job(name: string, organization: string): void {
    this.#within(name, (application) => application.job(organization));
  }

  keepAlive(name: string): void {
    this.#within(name, (application) => application.keepAlive());
  }

  deploy(name: string, encryptionKeys?: readonly string[]): void {
    if (encryptionKeys) this.#keys.set(name, encryptionKeys);
    this.#within(name, async (application) => {
      const ending = await application.close();
      this.world.note(application.machine, 'is replaced');
      this.world.crash(application.machine, 0);
      return ending;
    });
  }

  hasKeyEverywhere(key: string): boolean {
    return [...this.#applications.values()].every(
      ({ machine, encryptionKeys }) => !machine.isAlive || encryptionKeys.includes(key),
    );
  }

  /** A browser that tries again, elsewhere if need be, until the user is logged in. */
  login(name: string, user: string): void {
    this.#session(name, user, 'in', (application) => application.login(user));
  }

  /** The same for a logout. */
  logout(name: string, user: string): void {
    if (this.world.oracle.login(user).state === 'out') return;
    this.world.revocations.logoutBegins(user, this.#busy.has(user));
    this.#session(name, user, 'out', (application) => application.logout(user));
  }

  #session(name: string, user: string, state: 'in' | 'out', act: (application: Application) => Promise<Ending>): void {
    const { oracle } = this.world;
    if (this.#busy.has(user)) return;
    this.#busy.add(user);
    oracle.loginIs(user, 'unsure');
    const attempt = (): void => {
      let isOver = false;
      const again = (): void => {
        if (isOver) return;
        isOver = true;
        this.at(this.world.scheduler.now + 5 * SECOND, attempt);
      };
      // A browser gives up in the end, and its user tries again.
      this.at(this.world.scheduler.now + 90 * SECOND, again);
      this.#within(name, async (application) => {
        const ending = await act(application);
        if (isOver) return ending;
        if (ending !== 'authorized') again();
        else {
          isOver = true;
          this.#busy.delete(user);
          oracle.loginIs(user, state);
        }
        return ending;
      });
    };
    attempt();
  }

  #start(name: string): void {
    if (this.#applications.get(name)?.machine.isAlive) return;
    const { load, mutation } = this.#options;
    const incarnation = this.#all.filter(({ machine }) => machine.name.startsWith(name)).length;
    const machine = this.world.addMachine(incarnation === 0 ? name : `${name}${incarnation}`);
    const application = new Application(
      this.world,
      machine,
      load(machine, this.#all.length),
      mutation,
      this.#keys.get(name) ?? this.#options.scenario.encryptionKeys ?? [],
    );
    this.#applications.set(name, application);
    this.#all.push(application);
  }

  #within(name: string, act: (application: Application) => Promise<Ending>): void {
    const application = this.#applications.get(name);
    application?.machine.receive(() => {
      const { scheduler, oracle } = this.world;
      const begun = scheduler.now;
      void act(application).then(() => {
        const took = application.machine.runningSince(begun);
        this.#slowestMs = Math.max(this.#slowestMs, took);
        if (took > BOUND_MS) oracle.violate('settles', `a request took ${Math.round(took)} ms`);
      });
    });
  }

  #everywhere(act: (name: string) => void): void {
    for (const name of this.#options.scenario.machines) act(name);
  }

  /** Has every user's token expire, and asks every process for every user, until it is clear who is logged in. */
  async #lookAtLogins(): Promise<void> {
    const { scheduler, oracle } = this.world;
    const { users, machines, lifetimeS } = this.#options.scenario;
    await scheduler.run(scheduler.now + lifetimeS * SECOND);
    const endings = new Map<string, Ending[]>();
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const user of users) {
        const found: Ending[] = [];
        endings.set(user, found);
        for (const name of machines) {
          this.#within(name, async (application) => {
            const ending = await application.request(user);
            found.push(ending);
            return ending;
          });
        }
      }
      await scheduler.run(scheduler.now + ROUND_MS);
    }
    for (const login of oracle.logins()) {
      const found = endings.get(login.user) ?? [];
      const isOn = found.length === machines.length && found.every((ending) => ending === 'authorized');
      const isOff = found.length === machines.length && found.every((ending) => ending === 'not authorized');
      const isRefused = found.every((ending) => typeof ending !== 'string' && ending.code === 'ERR_API');
      const what = `${login.user} is ${JSON.stringify(found)}`;
      if (login.state === 'unsure') oracle.violate('settles', `the login or logout of ${login.user} has not ended`);
      else if (login.state === 'in' && isRefused && oracle.isEndUnseen(login)) oracle.losses.push('end unseen');
      else if (!isOn && !isOff) oracle.violate('kept', `unknown: ${what}`);
      else if (login.state === 'in' && isOff) oracle.isOff(login);
      else if (login.state === 'out' && isOn && login.undone) oracle.losses.push(login.undone);
      else if (login.state === 'out' && isOn) oracle.violate('logged out', what);
      else if (login.state === 'in' && isOn && !oracle.isSaved(login))
        oracle.violate('saved', `the store has no good pair of ${login.user}`);
    }
  }

  /** Has every process work as each organization. */
  async #lookAtOrganizations(): Promise<void> {
    const { scheduler, oracle } = this.world;
    const { machines, organizations = [] } = this.#options.scenario;
    for (const organization of organizations) {
      const found: Ending[] = [];
      for (const name of machines)
        this.#within(name, async (application) => {
          const ending = await application.job(organization);
          found.push(ending);
          return ending;
        });
      await scheduler.run(scheduler.now + ROUND_MS);
      if (found.length < machines.length || found.some((ending) => ending !== 'authorized'))
        oracle.violate('kept', `the jobs of ${organization} are ${JSON.stringify(found)}`);
    }
  }

  async #close(): Promise<void> {
    const { scheduler, oracle } = this.world;
    this.#everywhere((name) => this.#within(name, (application) => application.close()));
    await scheduler.run(scheduler.now + CLOSE_MS);
    for (const { machine, pending, isClosed } of this.#all) {
      if (!machine.isAlive) continue;
      if (!isClosed) oracle.violate('settles', `close() of ${machine.name} has not ended`);
      for (const what of pending.values()) oracle.violate('settles', `the ${what} at ${machine.name} has not ended`);
    }
    const setBackMs = this.#all.map(({ machine }) => machine.setBackMs);
    await scheduler.run(scheduler.now + REMAINDER_MS + Math.max(...setBackMs));
    for (const { machine } of this.#all)
      if (machine.isAlive && machine.timers > 0)
        oracle.violate('empty', `${machine.name} has ${machine.timers} timers left`);
  }
}
