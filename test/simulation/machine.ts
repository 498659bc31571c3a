import type { Clocks, Way } from './faults.js';
import type { Random } from './random.js';
import type { Occurrence, Scheduler } from './scheduler.js';

/** Epoch milliseconds at which simulated time begins. */
export const EPOCH = Date.UTC(2026, 0, 1);

/** A time during which a process stood still. */
export interface Freeze {
  readonly from: number;
  readonly until: number;
  /** What the process was about to do: send a request, or anything else. */
  readonly way: Way;
  readonly clocks: Clocks;
}

/** What a process waits for with a timer. */
class Timer {
  readonly run: () => void;
  readonly due: number;
  occurrence: Occurrence | undefined;

  constructor(due: number, run: () => void) {
    this.due = due;
    this.run = run;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** One process of the application: its clocks, its timers, and how it stands still or dies. */
export class Machine {
  readonly name: string;
  readonly random: Random;
  readonly #scheduler: Scheduler;
  readonly #timers = new Set<Timer>();
  readonly #outbox: (() => void)[] = [];
  readonly #inbox: { readonly receive: () => void; readonly drop: () => void }[] = [];
  readonly freezes: Freeze[] = [];
  isAlive = true;
  /** Runs code of this process, so that what it does is known to be its own. */
  readonly #enter: (machine: Machine, run: () => void) => void;
  #freeze: { readonly from: number; readonly clocks: Clocks } | undefined;
  /** By how much the wall clock has been set back, in all. */
  setBackMs = 0;
  /** When the wall clock was set. */
  readonly settings: number[] = [];
  /** Whether the wall clock has always told the time: what was saved by another one is still in the store. */
  isOnTime = true;
  #monotonicLag = 0;
  #wallLead = 0;
  diedAt = Number.POSITIVE_INFINITY;

  constructor(name: string, scheduler: Scheduler, random: Random, enter: (machine: Machine, run: () => void) => void) {
    this.name = name;
    this.random = random;
    this.#scheduler = scheduler;
    this.#enter = enter;
  }

  get isFrozen(): boolean {
    return this.#freeze !== undefined;
  }

  /** Timers that have not fired. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Milliseconds, as `performance.now()` tells them. */
  monotonic(): number {
    return this.#scheduler.now - this.#monotonicLag;
  }

  /** Epoch milliseconds, as `Date.now()` tells them. */
  wall(): number {
    return Math.floor(EPOCH + this.#scheduler.now + this.#wallLead);
  }

  /** Sets the wall clock. */
  jump(ms: number): void {
    this.#wallLead += ms;
    this.settings.push(this.#scheduler.now);
    this.isOnTime = false;
    this.setBackMs += Math.max(0, -ms);
  }

  /** Milliseconds of simulated time since `since` in which the process could run. */
  runningSince(since: number): number {
    return this.runningBetween(since, this.#scheduler.now);
  }

  /** Milliseconds between two moments in which the process could run. */
  runningBetween(since: number, end: number): number {
    return this.freezes.reduce(
      (left, { from, until }) => left - Math.max(0, Math.min(until, end) - Math.max(from, since)),
      end - since,
    );
  }

  setTimer(run: () => void, ms: number): Timer {
    const delay = ms >= 1 && ms < 2 ** 31 ? Math.trunc(ms) : 1;
    const timer = new Timer(this.monotonic() + delay, run);
    this.#timers.add(timer);
    if (this.isAlive) timer.occurrence = this.#scheduler.after(delay, () => this.#fire(timer));
    return timer;
  }

  clearTimer(timer: unknown): void {
    if (!(timer instanceof Timer) || !this.#timers.delete(timer)) return;
    if (timer.occurrence) timer.occurrence.cancelled = true;
  }

  /** Runs `send` now, or when the process goes on. */
  send(send: () => void): void {
    if (!this.isAlive) return;
    if (this.isFrozen) this.#outbox.push(send);
    else send();
  }

  /** Runs `receive` in this process: now, or when it goes on. Runs `drop` once it has died before that. */
  receive(receive: () => void, drop: () => void = () => undefined): void {
    if (!this.isAlive) drop();
    else if (this.isFrozen) this.#inbox.push({ receive, drop });
    else this.#enter(this, receive);
  }

  /** Lets the process stand still for `ms`. */
  freeze(ms: number, clocks: Clocks, way: Way): void {
    if (!this.isAlive || this.isFrozen) return;
    const from = this.#scheduler.now;
    this.#freeze = { from, clocks };
    this.freezes.push({ from, until: from + ms, way, clocks });
    this.#scheduler.after(ms, () => this.#thaw());
  }

  /** Ends the process. */
  crash(): void {
    this.isAlive = false;
    this.diedAt = this.#scheduler.now;
    for (const timer of this.#timers) if (timer.occurrence) timer.occurrence.cancelled = true;
    this.#timers.clear();
    for (const { drop } of this.#inbox.splice(0)) drop();
  }

  #fire(timer: Timer): void {
    timer.occurrence = undefined;
    if (this.isFrozen || !this.#timers.has(timer)) return;
    const left = timer.due - this.monotonic();
    if (left > 0) {
      timer.occurrence = this.#scheduler.after(left, () => this.#fire(timer));
      return;
    }
    this.#timers.delete(timer);
    this.#enter(this, timer.run);
  }

  #thaw(): void {
    const freeze = this.#freeze;
    if (!freeze || !this.isAlive) return;
    const stood = this.#scheduler.now - freeze.from;
    if (freeze.clocks !== 'stop') this.#monotonicLag += stood;
    if (freeze.clocks === 'pause') {
      this.#wallLead -= stood;
      this.isOnTime = false;
    }
    this.#freeze = undefined;
    const sends = this.#outbox.splice(0);
    const receives = this.#inbox.splice(0);
    const timers = [...this.#timers].filter(({ occurrence }) => !occurrence).sort((one, other) => one.due - other.due);
    const firing = timers.map((timer) => () => this.#fire(timer));
    const receiving = receives.map(
      ({ receive, drop }) =>
        () =>
          this.receive(receive, drop),
    );
    // Either may come first in Node: a process stands still in any phase of its event loop.
    const isTimersFirst = this.random.chance(0.5);
    const all = [
      ...sends.map((send) => () => this.send(send)),
      ...(isTimersFirst ? [...firing, ...receiving] : [...receiving, ...firing]),
    ];
    for (const run of all) this.#scheduler.after(0, run);
  }
}
