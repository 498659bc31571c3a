/** Returns a function that runs a task until that has succeeded once, and joins calls that overlap. */
export function succeedOnce<T>(task: () => Promise<T>): () => Promise<T> {
  let success: Promise<T> | undefined;
  return () => {
    success ??= task().catch((error: unknown) => {
      success = undefined;
      throw error;
    });
    return success;
  };
}

/** Starts to load what will be needed soon. A request must not depend on the disk, or on a free descriptor. */
export function loadAhead<T>(load: () => Promise<T>): () => Promise<T> {
  load().catch(() => {});
  return load;
}

/** Longest delay of a timer in Node, in milliseconds. A longer one fires at once. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1;

/** Runs the tasks of a key one after the other, in the order of the calls. Tasks of different keys run concurrently. */
export class KeyedQueue {
  /** Resolve when the last task of each key has settled. */
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `task` once all earlier tasks of `key` have settled, within this call if there are none. Settles as the task does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    // Added before the task starts, which may itself add a task of its key.
    const { earlier, end } = this.#add(key);
    if (earlier) await earlier;
    try {
      return await task();
    } finally {
      end();
    }
  }

  /**
   * Waits until all earlier tasks of `key` have settled. Resolves to a function that ends the caller's own task.
   *
   * @throws like {@link withTimeout}: later tasks then wait for the earlier ones alone
   */
  async turn(key: string, ms: number, timeoutError: () => Error, signal?: AbortSignal): Promise<() => void> {
    const { earlier = Promise.resolve(), end } = this.#add(key);
    try {
      await withTimeout(earlier, ms, timeoutError, signal);
      return end;
    } catch (error) {
      void earlier.then(end);
      throw error;
    }
  }

  #add(key: string): { readonly earlier: Promise<void> | undefined; readonly end: () => void } {
    const earlier = this.#tails.get(key);
    let settle: (() => void) | undefined;
    const tail = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#tails.set(key, tail);
    const end = () => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
      settle?.();
    };
    return { earlier, end };
  }

  /** Resolves when every task that runs or waits now has settled. */
  async drain(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason on abort. With `unref`, it does not keep the process alive. */
export function pause(
  ms: number,
  { signal, unref = false }: { readonly signal?: AbortSignal | undefined; readonly unref?: boolean } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (unref) timer.unref();
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Settles as a promise does, or rejects with the signal's reason on abort. The work behind the promise goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

/** A timer this late, in milliseconds, follows a suspension or a blocked event loop: an answer may be there, not read yet. */
const LATE_TIMER_MS = 100;

/** Time to read such an answer, in milliseconds. */
const ANSWER_GRACE_MS = 20;

/** Like {@link abortable}, and rejects with `timeoutError()` after `ms` milliseconds. */
export async function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  timeoutError: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  let giveUp: ((error: unknown) => void) | undefined;
  const limit = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  const dueAt = performance.now() + ms;
  const expire = () => giveUp?.(timeoutError());
  let timer = setTimeout(() => {
    // Timers run before sockets are read.
    if (performance.now() - dueAt > LATE_TIMER_MS) timer = setTimeout(expire, ANSWER_GRACE_MS);
    else expire();
  }, ms);
  const abort = () => giveUp?.(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener('abort', abort);
  try {
    return await Promise.race([limit, promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
