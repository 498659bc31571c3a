/** Something that happens at a moment of simulated time. */
export interface Occurrence {
  readonly time: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Most occurrences of one trial: ten times as many as the busiest one has. */
const MAX_COUNT = 200_000;

/** Smallest step of time. A power of two, so that sums and differences of times are exact. */
const GRAIN_MS = 2 ** -10;

/** Simulated time, in milliseconds, and what is still to happen: in order of time, then in the order in which it was told. */
export class Scheduler {
  readonly #heap: Occurrence[] = [];
  #now = 0;
  #orders = 0;

  get now(): number {
    return this.#now;
  }

  /** Number of occurrences that have run. */
  count = 0;

  /** Whether a process has run since promises were last let settle: what happens elsewhere settles none. */
  hasRunProcess = true;

  /** Has `run` called at `time`, or now if that has passed. */
  at(time: number, run: () => void): Occurrence {
    this.#orders += 1;
    const occurrence = {
      time: Math.max(Math.ceil(time / GRAIN_MS) * GRAIN_MS, this.#now),
      order: this.#orders,
      run,
      cancelled: false,
    };
    this.#push(occurrence);
    return occurrence;
  }

  /** Has `run` called after `ms`. */
  after(ms: number, run: () => void): Occurrence {
    return this.at(this.#now + ms, run);
  }

  /** Runs everything up to `until`, one after the other, each with all the promises that it settles. */
  async run(until: number): Promise<void> {
    await this.#settle();
    for (let next = this.#heap[0]; next && next.time <= until; next = this.#heap[0]) {
      this.#pop();
      if (next.cancelled) continue;
      this.#now = next.time;
      this.count += 1;
      if (this.count > MAX_COUNT) throw new Error(`more than ${MAX_COUNT} events: something goes round in circles`);
      next.run();
      if (this.hasRunProcess) await this.#settle();
    }
    this.#now = Math.max(this.#now, until);
  }

  async #settle(): Promise<void> {
    this.hasRunProcess = false;
    await settled();
  }

  #push(entry: Occurrence): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex] as Occurrence;
      if (!isBefore(entry, parent)) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= heap.length) break;
      const right = heap[childIndex + 1];
      if (right && isBefore(right, heap[childIndex] as Occurrence)) childIndex += 1;
      const child = heap[childIndex] as Occurrence;
      if (!isBefore(child, last)) break;
      heap[index] = child;
      index = childIndex;
    }
    heap[index] = last;
  }
}

function isBefore(one: Occurrence, other: Occurrence): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

/**
 * Resolves when no microtask is left: Node empties their queue before it goes on to the next tick. Twice, for those that a
 * tick of somebody else begins. Much faster than `setImmediate`, which goes through the event loop.
 */
async function settled(): Promise<void> {
  await nextTick();
  await nextTick();
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
