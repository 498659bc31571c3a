/** Runs tasks of one key one after the other, in the order of the calls. Tasks of different keys run concurrently. */
export class KeyedQueue {
  /** The last task of each key with a task that runs or waits. */
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Runs `task` after all earlier tasks of `key` have settled. Settles as the task does. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    // Never begins within this call: a task may itself add a task of its key.
    const result = (this.#tails.get(key) ?? Promise.resolve()).then(task, task);
    this.#tails.set(key, result);
    const settled = () => {
      if (this.#tails.get(key) === result) this.#tails.delete(key);
    };
    result.then(settled, settled);
    return result;
  }

  /** Waits for the turn of a task that its caller runs itself. Resolves to the function that ends the turn. */
  turn(key: string): Promise<() => void> {
    return new Promise((resolve) => {
      void this.run(key, () => new Promise<void>((endTurn) => resolve(endTurn)));
    });
  }

  /** Resolves when every task that runs or waits now has settled. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#tails.values());
  }
}
