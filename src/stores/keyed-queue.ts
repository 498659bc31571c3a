/** Runs tasks of one key one after the other, in the order of the calls. Tasks of different keys run concurrently. */
export class KeyedQueue {
  /** Resolve when the last task of each key has settled. */
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `task` after all earlier tasks of `key` have settled, within this call if there are none. Settles as the task does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const earlier = this.#tails.get(key);
    let end = (): void => undefined;
    const tail = new Promise<void>((resolve) => {
      end = resolve;
    });
    // Set before the task starts, which may itself add a task of its key.
    this.#tails.set(key, tail);
    if (earlier) await earlier;
    try {
      return await task();
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
      end();
    }
  }

  /** Waits for the turn of a task that its caller runs itself. Resolves to the function that ends the turn. */
  turn(key: string): Promise<() => void> {
    return new Promise((resolve) => {
      void this.run(key, () => new Promise<void>((endTurn) => resolve(endTurn)));
    });
  }

  /** Resolves when every task that runs or waits now has settled. */
  async drain(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}
