import type { Cut, Damage, Fault, Target } from './faults.js';
import type { Machine } from './machine.js';
import type { World } from './world.js';

/** One call of a process to the store or to the service: the place of a fault. */
export interface Step {
  readonly index: number;
  readonly machine: Machine;
  readonly target: Target;
  readonly op: string;
  readonly time: number;
}

/** How an answer is lost: on its way, in the socket of a process that does not read it, or to a process that has given up. */
export type LostAnswer = 'on its way' | 'not read' | 'given up';

/** How a call can end, each at most once. */
export interface CallEnds<T> {
  /** The request has left the process. */
  readonly left?: () => void;
  readonly answer: (value: T, damage: Damage | undefined) => void;
  readonly fail: (code: string) => void;
  /** The service answers with this status and no tokens. */
  readonly status?: (status: number) => void;
  /** The call took effect, and its process will never see the answer. */
  readonly lost?: (value: T, how: LostAnswer) => void;
}

/** How a request reaches the other side: while its process waits for the answer, after that, or once more. */
export type Delivery = 'awaited' | 'late' | 'again';

/** What a call does at the other side. */
export type Effect<T> = (delivery: Delivery) => T;

/** A call that is under way. */
export interface Call {
  /** The process does not wait for the answer any more. */
  abandon(): void;
}

/** A connection that is cut. */
export interface Connection {
  readonly machine: Machine | undefined;
  readonly target: Target;
  readonly cut: Cut;
  readonly until: number;
}

/** One request and its answer. */
export class Exchange<T> implements Call {
  readonly #world: World;
  readonly #step: Step;
  readonly #fault: Fault | undefined;
  readonly #effect: Effect<T>;
  readonly #ends: CallEnds<T>;
  #state: 'open' | 'abandoned' | 'over' = 'open';
  /** What came of the effect, until its process has the answer. */
  #unseen: { readonly value: T } | undefined;
  #hasArrived = false;

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
    this.#lose('given up');
  }

  /** The request leaves its process. */
  leave(cut: Connection | undefined): void {
    const { scheduler } = this.#world;
    const fault = this.#fault;
    if (this.#state !== 'open') return;
    if (cut?.cut === 'refuse' || fault?.kind === 'refuse') {
      this.#fail('ECONNREFUSED', 1 + this.#world.latency());
      return;
    }
    this.#ends.left?.();
    this.#note('leaves');
    if (cut?.cut === 'lose') return;
    if (cut?.cut === 'read-only' && this.#step.op !== 'get') {
      this.#fail('READONLY', 2 * this.#world.latency());
      return;
    }
    const held = cut?.cut === 'hold' ? cut.until - scheduler.now : 0;
    const slow = fault?.kind === 'slow' && fault.way === 'leave' ? fault.ms : 0;
    scheduler.after(this.#world.latency() + held + slow, () => this.#world.serve(this.#step, () => this.#arrive()));
  }

  /** The request is at the other side. */
  #arrive(): void {
    const fault = this.#fault;
    const isLost = fault !== undefined && 'effect' in fault && fault.effect !== 'done';
    if (!isLost) this.#takeEffect();
    switch (fault?.kind) {
      case 'reset':
        this.#lose();
        this.#fail('ECONNRESET', this.#world.latency());
        if (fault.effect === 'late') this.#world.scheduler.after(fault.ms, () => this.#takeEffect());
        break;
      case 'silence':
        this.#lose();
        break;
      case 'status':
        this.#lose();
        this.#end(this.#world.latency(), 'is answered', `${fault.status}`, () => this.#ends.status?.(fault.status));
        break;
      case 'twice':
        this.#world.scheduler.after(fault.ms, () => this.#takeEffectAgain());
        this.#answer(0);
        break;
      case 'failover':
        this.#failOver(fault.ms);
        this.#answer(0);
        break;
      default:
        this.#answer(fault?.kind === 'slow' && fault.way === 'answer' ? fault.ms : 0);
    }
  }

  #answer(slowMs: number): void {
    this.#world.scheduler.after(this.#world.latency() + slowMs, () => this.#return());
  }

  #failOver(ms: number): void {
    this.#world.scheduler.after(1, () => {
      this.#world.note(undefined, 'the store fails over', `forgets ${ms} ms`);
      this.#world.store.failover(ms);
      this.#world.oracle.failedOver();
    });
  }

  /** Nobody waits for what comes of it. */
  #takeEffectAgain(): void {
    this.#note('takes effect again');
    this.#world.running = undefined;
    this.#ends.lost?.(this.#effect('again'), 'on its way');
  }

  #takeEffect(): void {
    this.#note('takes effect');
    this.#world.running = undefined;
    const { store } = this.#world;
    if (this.#fault?.kind === 'stale') store.lagMs = this.#fault.ms;
    this.#unseen = { value: this.#effect(this.#state === 'open' ? 'awaited' : 'late') };
    store.lagMs = 0;
    if (this.#fault?.kind === 'evict') this.#world.evict(this.#fault.what);
    const isAnswered = this.#fault === undefined || !('effect' in this.#fault);
    if (this.#state === 'abandoned') this.#lose('given up');
    else if (this.#state !== 'open' || !isAnswered) this.#lose();
  }

  /** The answer is at the door of its process. */
  #return(): void {
    const cut = this.#world.befall(this.#step, this.#fault);
    if (cut === undefined || cut.cut === 'read-only') this.#deliver();
    else if (cut.cut === 'hold') this.#world.scheduler.at(cut.until, () => this.#deliver());
    else {
      this.#lose();
      if (cut.cut === 'refuse') this.#fail('ECONNRESET', 1);
    }
  }

  #deliver(): void {
    this.#hasArrived = this.#step.machine.isFrozen && this.#state === 'open';
    const answer = () => {
      const unseen = this.#unseen;
      if (this.#state !== 'open' || !unseen) return;
      this.#state = 'over';
      this.#unseen = undefined;
      this.#note('is answered');
      this.#ends.answer(unseen.value, this.#fault?.kind === 'damage' ? this.#fault.damage : undefined);
    };
    this.#step.machine.receive(answer, () => this.#lose());
  }

  #fail(code: string, ms: number): void {
    this.#end(ms, 'fails', code, () => this.#ends.fail(code));
  }

  /** Ends the call after `ms`, unless it has ended by then. */
  #end(ms: number, what: string, detail: string, end: () => void): void {
    this.#world.scheduler.after(ms, () => {
      this.#step.machine.receive(() => {
        if (this.#state !== 'open') return;
        this.#state = 'over';
        this.#note(what, detail);
        end();
      });
    });
  }

  #lose(how: LostAnswer = 'on its way'): void {
    const unseen = this.#unseen;
    if (!unseen) return;
    this.#unseen = undefined;
    this.#note('loses its answer');
    this.#ends.lost?.(unseen.value, this.#hasArrived && this.#step.machine.isAlive ? 'not read' : how);
  }

  #note(what: string, detail = ''): void {
    this.#world.note(this.#step.machine, `#${this.#step.index} ${this.#step.op} ${what}`, detail);
  }
}
