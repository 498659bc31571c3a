// Not the global timers: a test that fakes those still gets its answers.
import { clearTimeout, setTimeout } from 'node:timers';

/** Waits that can all be given up at once. */
export class Pauses {
  readonly #waiting = new Map<NodeJS.Timeout, () => void>();

  /** Resolves after so many milliseconds, or when all are given up. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(timer);
        resolve();
      }, ms);
      this.#waiting.set(timer, resolve);
    });
  }

  giveUp(): void {
    for (const [timer, resolve] of this.#waiting) {
      clearTimeout(timer);
      resolve();
    }
    this.#waiting.clear();
  }
}
