/** Runs tasks of one key one after the other, in the order of the calls. Tasks of different keys run concurrently. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Number of keys with a task that runs or waits. */
  get size(): number {
    return this.#tails.size;
  }

  /** Runs `task` after all earlier turns of `key` have ended, and settles as it does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const endTurn = await this.turn(key);
    try {
      return await task();
    } finally {
      endTurn();
    }
  }

  /** Resolves when all earlier turns of `key` have ended, to the function that ends this turn. */
  async turn(key: string): Promise<() => void> {
    const earlier = this.#tails.get(key);
    let endTurn = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      endTurn = resolve;
    });
    const tail = Promise.all([earlier, ended]).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    this.#tails.set(key, tail);
    await earlier;
    return endTurn;
  }

  /** Resolves when every task that runs or waits now has settled. */
  async drain(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}
