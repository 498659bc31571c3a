import { type Call, type CallEnds, type Connection, type Effect, Exchange, type Step } from './exchange.js';
import type { Cut, Fault, Target } from './faults.js';
import { describeFault } from './faults.js';
import { Machine } from './machine.js';
import { Oracle } from './oracle.js';
import { Organizations } from './organizations.js';
import { Random } from './random.js';
import { RedisServer } from './redis-server.js';
import { Revocations } from './revocations.js';
import { Scheduler } from './scheduler.js';
import { type Mode, Service } from './service.js';
import { StoreServer } from './store.js';
import type { Lack } from './store-client.js';

/** A token endpoint that takes its time: so many requests at once, so many milliseconds each, in the order in which they come. */
export interface TokenWork {
  readonly places: number;
  readonly ms: number;
}

/** What a simulated world is made of. */
export interface WorldOptions {
  readonly seed: number;
  readonly mode: Mode;
  /** How long an access token lives, in seconds. */
  readonly lifetimeS: number;
  /** Returns what goes wrong with a call, if anything does. */
  readonly faultAt: (step: Step, world: World) => Fault | undefined;
  /** Returns how long a message takes, in milliseconds. */
  readonly latency: (random: Random) => number;
  /** How many token requests the service works on at once, and for how long. Default: any number, in no time. */
  readonly tokenWork?: TokenWork | undefined;
  /** What the token store lacks. */
  readonly lacks: Lack | undefined;
  /** Whether the service has a revocation endpoint. */
  readonly revokes: boolean;
  /** What the application has grants of its own for. */
  readonly organizations: readonly string[];
  /** Whether to keep what happens, line by line. */
  readonly isTraced: boolean;
}

/** Longest time of a message once faults have ended. */
const HEALED_MS = 20;

/** Simulated time, processes, network, store and service, with an oracle that watches them. */
export class World {
  readonly scheduler = new Scheduler();
  readonly options: WorldOptions;
  readonly service: Service;
  readonly redis: RedisServer;
  /** What an observer sees of the store's server. */
  readonly store: StoreServer;
  readonly oracle: Oracle;
  readonly revocations: Revocations;
  readonly organizations: Organizations;
  readonly machines: Machine[] = [];
  readonly lines: string[] = [];
  /** Calls that did not go as they should, in order. */
  readonly faults: { readonly step: Step; readonly fault: Fault }[] = [];
  /** When anything went wrong: with a call, a process, a connection or the store. */
  readonly troubles: number[] = [];
  /** Whether faults still happen. */
  isFaulty = true;
  /** The process whose code runs now. */
  running: Machine | undefined;
  /** Called when a process dies. */
  onCrash: (machine: Machine, restartMs: number) => void = () => {};
  readonly #random: Random;
  #cuts: Connection[] = [];
  #steps = 0;
  /** Token requests that are worked on, and those that wait. */
  #working = 0;
  readonly #waiting: (() => void)[] = [];
  #digest = 2166136261;

  constructor(options: WorldOptions) {
    this.options = options;
    this.#random = new Random(options.seed, 'network');
    const now = () => this.scheduler.now;
    this.service = new Service(options.mode, options.lifetimeS, now);
    this.redis = new RedisServer(now);
    this.store = new StoreServer(this.redis, now, (write) => {
      this.oracle.stored(write);
      this.organizations.stored(write);
    });
    this.oracle = new Oracle(this);
    this.revocations = new Revocations(this);
    this.organizations = new Organizations(this);
  }

  get steps(): number {
    return this.#steps;
  }

  /** A number that differs as soon as anything has gone otherwise. */
  get digest(): number {
    return this.#digest >>> 0;
  }

  /** Notes what happens. */
  note(machine: Machine | undefined, what: string, detail = ''): void {
    const name = machine?.name ?? '-';
    let digest = this.#digest ^ Math.round(this.scheduler.now * 1000);
    for (const text of [name, what, detail])
      for (let index = 0; index < text.length; index += 1)
        digest = Math.imul(digest ^ text.charCodeAt(index), 16777619);
    this.#digest = digest;
    if (this.options.isTraced)
      this.lines.push(`${this.scheduler.now.toFixed(3).padStart(12)}  ${name.padEnd(4)} ${what} ${detail}`);
  }

  /** Starts a process. */
  addMachine(name: string): Machine {
    const random = new Random(this.options.seed, `machine ${name}`);
    const machine = new Machine(name, this.scheduler, random, (entered, run) => this.#enter(entered, run));
    this.scheduler.hasRunProcess = true;
    this.machines.push(machine);
    return machine;
  }

  /** Ends a process; another one takes its place after `restartMs`. */
  crash(machine: Machine, restartMs: number): void {
    if (!machine.isAlive) return;
    this.note(machine, 'crashes');
    this.troubles.push(this.scheduler.now);
    machine.crash();
    this.oracle.crashed(machine);
    this.onCrash(machine, restartMs);
  }

  freeze(machine: Machine, fault: Extract<Fault, { readonly kind: 'freeze' }>): void {
    this.note(machine, 'stands still', describeFault(fault));
    this.troubles.push(this.scheduler.now);
    machine.freeze(fault.ms, fault.clocks, fault.way);
  }

  /** The store drops the lock or the record of the grant that was touched last. */
  evict(what: 'lease' | 'record'): void {
    this.note(undefined, 'the store drops', what);
    this.store.evict(what);
  }

  cut(machine: Machine | undefined, target: Target, cut: Cut, ms: number): void {
    this.note(machine, `is cut off from the ${target}`, `${cut} ${ms}`);
    this.troubles.push(this.scheduler.now);
    this.#cuts.push({ machine, target, cut, until: this.scheduler.now + ms });
  }

  /** Ends all faults: connections work, and calls go well from now on. */
  heal(): void {
    this.note(undefined, 'faults end');
    this.isFaulty = false;
    this.#cuts = [];
  }

  isCut(machine: Machine, target: Target): boolean {
    return this.#cutOf(machine, target) !== undefined;
  }

  /** Sends a request of `machine` over the network. `effect` runs at the other side, at most once. */
  call<T>(machine: Machine, target: Target, op: string, effect: Effect<T>, ends: CallEnds<T>): Call {
    const { step, fault } = this.#begin(machine, target, op);
    const exchange = new Exchange(this, step, fault, effect, ends);
    machine.send(() => exchange.leave(this.#cutOf(machine, target)));
    return exchange;
  }

  /** Has the service do what was asked: at once, but a token request when it is its turn, while faults last. */
  serve({ target, op }: Step, act: () => void): void {
    const { tokenWork } = this.options;
    if (tokenWork === undefined || !this.isFaulty || target === 'store' || op === 'api') {
      act();
      return;
    }
    const work = (): void => {
      this.#working += 1;
      this.scheduler.after(tokenWork.ms, () => {
        this.#working -= 1;
        act();
        this.#waiting.shift()?.();
      });
    };
    if (this.#working < tokenWork.places) work();
    else this.#waiting.push(work);
  }

  /** How long one message takes. */
  latency(): number {
    const ms = this.options.latency(this.#random);
    return this.isFaulty ? ms : Math.min(ms, HEALED_MS);
  }

  /** Lets the process of a call meet with the part of its fault that is not the call's own. */
  befall(step: Step, fault: Fault | undefined): Connection | undefined {
    if (fault) this.#befall(step.machine, step.target, fault, 'answer');
    return this.#cutOf(step.machine, step.target);
  }

  /** Counts a call, and lets its process meet with the part of its fault that comes first. */
  #begin(machine: Machine, target: Target, op: string): { readonly step: Step; readonly fault: Fault | undefined } {
    this.#steps += 1;
    const step: Step = { index: this.#steps, machine, target, op, time: this.scheduler.now };
    const fault = this.isFaulty ? this.options.faultAt(step, this) : undefined;
    if (fault) {
      this.faults.push({ step, fault });
      this.troubles.push(step.time);
      this.note(machine, `#${step.index} ${op}`, `FAULT ${describeFault(fault)}`);
      if (fault.kind === 'jump') machine.jump(fault.ms);
      else this.#befall(machine, target, fault, 'leave');
    }
    return { step, fault };
  }

  #befall(machine: Machine, target: Target, fault: Fault, way: 'leave' | 'answer'): void {
    if (!('way' in fault) || fault.way !== way) return;
    if (fault.kind === 'freeze') this.freeze(machine, fault);
    else if (fault.kind === 'crash') this.crash(machine, fault.ms);
    else if (fault.kind === 'cut') this.cut(fault.everyone ? undefined : machine, target, fault.cut, fault.ms);
  }

  #cutOf(machine: Machine, target: Target): Connection | undefined {
    if (this.#cuts.length === 0) return undefined;
    this.#cuts = this.#cuts.filter(({ until }) => until > this.scheduler.now);
    return this.#cuts.find((cut) => cut.target === target && (cut.machine === undefined || cut.machine === machine));
  }

  #enter(machine: Machine, run: () => void): void {
    this.running = machine;
    this.scheduler.hasRunProcess = true;
    run();
  }
}
