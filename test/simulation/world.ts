import type { Cut, Fault, Target } from './faults.js';
import { describeFault } from './faults.js';
import { Machine } from './machine.js';
import { Oracle } from './oracle.js';
import { Random } from './random.js';
import { Scheduler } from './scheduler.js';
import { type Mode, Service } from './service.js';
import { StoreServer } from './store.js';

/** One call of a process to the store or to the service: the place of a fault. */
export interface Step {
  readonly index: number;
  readonly machine: Machine;
  readonly target: Target;
  readonly op: string;
  readonly time: number;
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
  /** Whether to keep what happens, line by line. */
  readonly isTraced: boolean;
}

/** How a call can end, each at most once. */
export interface CallEnds<T> {
  /** The request has left the process. */
  readonly left?: () => void;
  readonly answer: (value: T) => void;
  readonly fail: (code: string) => void;
  /** The service answers with this status and no tokens. */
  readonly status?: (status: number) => void;
  /** The call took effect, and its process will never see the answer. */
  readonly lost?: (value: T) => void;
}

/** What a call does at the other side. @param isAwaited Whether its process still waits for the answer */
type Effect<T> = (isAwaited: boolean) => T;

/** A call that is under way. */
export interface Call {
  /** The process does not wait for the answer any more. */
  abandon(): void;
}

interface Connection {
  readonly machine: Machine | undefined;
  readonly target: Target;
  readonly cut: Cut;
  readonly until: number;
}

/** Simulated time, processes, network, store and service, with an oracle that watches them. */
export class World {
  readonly scheduler = new Scheduler();
  readonly options: WorldOptions;
  readonly service: Service;
  readonly store: StoreServer;
  readonly oracle: Oracle;
  readonly machines: Machine[] = [];
  readonly lines: string[] = [];
  /** Calls that did not go as they should, in order. */
  readonly faults: { readonly step: Step; readonly fault: Fault }[] = [];
  /** Whether faults still happen. */
  isFaulty = true;
  /** The process whose code runs now. */
  running: Machine | undefined;
  /** Called when a process dies. */
  onCrash: (machine: Machine, restartMs: number) => void = () => {};
  readonly #random: Random;
  #cuts: Connection[] = [];
  #steps = 0;
  #digest = 2166136261;

  constructor(options: WorldOptions) {
    this.options = options;
    this.#random = new Random(options.seed, 'network');
    const now = () => this.scheduler.now;
    this.service = new Service(options.mode, options.lifetimeS, now);
    this.store = new StoreServer(now, (write) => this.oracle.stored(write));
    this.oracle = new Oracle(this);
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
    this.machines.push(machine);
    return machine;
  }

  /** Ends a process; another one takes its place after `restartMs`. */
  crash(machine: Machine, restartMs: number): void {
    if (!machine.isAlive) return;
    this.note(machine, 'crashes');
    machine.crash();
    this.oracle.crashed(machine);
    this.onCrash(machine, restartMs);
  }

  freeze(machine: Machine, fault: Extract<Fault, { readonly kind: 'freeze' }>): void {
    this.note(machine, 'stands still', describeFault(fault));
    machine.freeze(fault.ms, fault.clocks, fault.way);
  }

  cut(machine: Machine | undefined, target: Target, cut: Cut, ms: number): void {
    this.note(machine, `is cut off from the ${target}`, `${cut} ${ms}`);
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
    this.#steps += 1;
    const step: Step = { index: this.#steps, machine, target, op, time: this.scheduler.now };
    const fault = this.isFaulty ? this.options.faultAt(step, this) : undefined;
    if (fault) {
      this.faults.push({ step, fault });
      this.note(machine, `#${step.index} ${op}`, `FAULT ${describeFault(fault)}`);
      if (fault.kind === 'jump') machine.jump(fault.ms);
      else this.#befall(machine, target, fault, 'leave');
    }
    const exchange = new Exchange(this, step, fault, effect, ends);
    machine.send(() => exchange.leave(this.#cutOf(machine, target)));
    return exchange;
  }

  /** How long one message takes. */
  latency(): number {
    const ms = this.options.latency(this.#random);
    return this.isFaulty ? ms : Math.min(ms, HEALED_MS);
  }

  /** Lets the process of a call meet with the part of its fault that is not the call's own. */
  befall(step: Step, fault: Fault): Connection | undefined {
    this.#befall(step.machine, step.target, fault, 'answer');
    return this.#cutOf(step.machine, step.target);
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
    run();
  }
}

/** One request and its answer. */
class Exchange<T> implements Call {
  readonly #world: World;
  readonly #step: Step;
  readonly #fault: Fault | undefined;
  readonly #effect: Effect<T>;
  readonly #ends: CallEnds<T>;
  #state: 'open' | 'abandoned' | 'over' = 'open';
  /** What came of the effect, until its process has the answer. */
  #unseen: { readonly value: T } | undefined;

  constructor(world: World, step: Step, fault: Fault | undefined, effect: Effect<T>, ends: CallEnds<T>) {
    this.#world = world;
    this.#step = step;
    this.#fault = fault;
    this.#effect = effect;
    this.#ends = ends;
  }

  abandon(): void {
    if (this.#state !== 'open') return;
    this.#state = 'abandoned';
    this.#lose();
  }

  /** The request leaves its process. */
  leave(cut: Connection | undefined): void {
    const { scheduler } = this.#world;
    const fault = this.#fault;
    if (this.#state !== 'open') return;
    if (cut?.cut === 'refuse' || fault?.kind === 'refuse') return this.#fail('ECONNREFUSED', 1 + this.#world.latency());
    this.#ends.left?.();
    this.#note('leaves');
    if (cut?.cut === 'lose') return;
    const held = cut ? cut.until - scheduler.now : 0;
    const slow = fault?.kind === 'slow' && fault.way === 'leave' ? fault.ms : 0;
    scheduler.after(this.#world.latency() + held + slow, () => this.#arrive());
  }

  #arrive(): void {
    const { scheduler, store } = this.#world;
    const fault = this.#fault;
    if (fault?.kind === 'reset' && fault.effect !== 'done') {
      this.#fail('ECONNRESET', this.#world.latency());
      if (fault.effect === 'late') scheduler.after(fault.ms, () => this.#takeEffect());
      return;
    }
    if (fault?.kind === 'silence' && fault.effect === 'none') return;
    if (fault?.kind === 'status' && fault.effect === 'none') return this.#answerStatus(fault.status);
    this.#takeEffect();
    if (fault?.kind === 'status' || fault?.kind === 'garbage') {
      this.#lose();
      return this.#answerStatus(fault.kind === 'status' ? fault.status : 200);
    }
    if (fault?.kind === 'silence') return this.#lose();
    if (fault?.kind === 'reset') {
      this.#lose();
      return this.#fail('ECONNRESET', this.#world.latency());
    }
    if (fault?.kind === 'failover') {
      scheduler.after(1, () => {
        this.#world.note(undefined, 'the store fails over', `forgets ${fault.ms} ms`);
        store.failover(fault.ms);
        this.#world.oracle.failedOver();
      });
    }
    const slow = fault?.kind === 'slow' && fault.way === 'answer' ? fault.ms : 0;
    scheduler.after(this.#world.latency() + slow, () => this.#return());
  }

  #takeEffect(): void {
    this.#note('takes effect');
    this.#world.running = undefined;
    this.#unseen = { value: this.#effect(this.#state === 'open') };
    if (this.#state !== 'open') this.#lose();
  }

  /** The answer is at the door of its process. */
  #return(): void {
    const { scheduler } = this.#world;
    const cut = this.#fault ? this.#world.befall(this.#step, this.#fault) : this.#world.befall(this.#step, NOTHING);
    if (cut?.cut === 'hold') {
      scheduler.at(cut.until, () => this.#deliver());
      return;
    }
    if (!cut) return this.#deliver();
    this.#lose();
    if (cut.cut === 'refuse') this.#fail('ECONNRESET', 1);
  }

  #deliver(): void {
    const isHeard = this.#step.machine.receive(() => {
      const unseen = this.#unseen;
      if (this.#state !== 'open' || !unseen) return;
      this.#state = 'over';
      this.#unseen = undefined;
      this.#note('is answered');
      this.#ends.answer(unseen.value);
    });
    if (!isHeard) this.#lose();
  }

  #fail(code: string, ms: number): void {
    this.#world.scheduler.after(ms, () => {
      this.#step.machine.receive(() => {
        if (this.#state !== 'open') return;
        this.#state = 'over';
        this.#note('fails', code);
        this.#ends.fail(code);
      });
    });
  }

  #answerStatus(status: number): void {
    this.#world.scheduler.after(this.#world.latency(), () => {
      this.#step.machine.receive(() => {
        if (this.#state !== 'open') return;
        this.#state = 'over';
        this.#note('is answered', String(status));
        this.#ends.status?.(status);
      });
    });
  }

  #lose(): void {
    const unseen = this.#unseen;
    if (!unseen) return;
    this.#unseen = undefined;
    this.#note('loses its answer');
    this.#ends.lost?.(unseen.value);
  }

  #note(what: string, detail = ''): void {
    this.#world.note(this.#step.machine, `#${this.#step.index} ${this.#step.op} ${what}`, detail);
  }
}

/** Longest time of a message once faults have ended. */
const HEALED_MS = 20;

const NOTHING: Fault = { kind: 'refuse' };
