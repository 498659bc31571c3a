/** Runs tasks of the same key one after the other, in the order in which they came; tasks of different keys at once. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** How many keys have a task that runs or waits. */
  get size(): number {
    return this.#tails.size;
  }

  /** Runs `task` after all earlier tasks of `key` have settled, and settles as it does. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    const result = before === undefined ? task() : before.then(task, task);
    const tail = result.then(ignore, ignore).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    this.#tails.set(key, tail);
    return result;
  }

  /** Resolves when every task that is known now has settled. */
  async drain(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}

function ignore(): void {}
