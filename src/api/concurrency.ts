interface Queue {
  running: number;
  /** In the order of their arrival; a Set, so that one that gives up leaves it at once. */
  readonly waiting: Set<() => void>;
}

/** Lets at most so many of each key run at once; the others wait in the order of their arrival. */
export class ConcurrencyLimiter {
  readonly #max: number;
  readonly #queues = new Map<string, Queue>();

  /** @param max Most at once for each key; a positive integer */
  constructor(max: number) {
    this.#max = max;
  }

  /** Keys with anything running or waiting. */
  get size(): number {
    return this.#queues.size;
  }

  /**
   * Takes a place, to be given back with {@link release}: `undefined` if there is one, else a promise for one.
   *
   * @throws the signal's reason, if that is aborted before there is a place
   */
  acquire(key: string, signal: AbortSignal | undefined): Promise<void> | undefined {
    const queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#queues.set(key, { running: 1, waiting: new Set() });
    } else if (queue.running < this.#max) {
      queue.running++;
    } else {
      return wait(queue, signal);
    }
    return undefined;
  }

  /** Gives a place back: to the one that waits longest, if any. */
  release(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    const [next] = queue.waiting;
    if (next !== undefined) next();
    else if (--queue.running === 0) this.#queues.delete(key);
  }
}

function wait(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const proceed = () => {
      leave();
      resolve();
    };
    const giveUp = () => {
      leave();
      reject(signal?.reason);
    };
    const leave = () => {
      queue.waiting.delete(proceed);
      signal?.removeEventListener('abort', giveUp);
    };
    if (signal?.aborted) return giveUp();
    queue.waiting.add(proceed);
    signal?.addEventListener('abort', giveUp);
  });
}
