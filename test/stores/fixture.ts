import { AsyncLocalStorage } from 'node:async_hooks';

/** A timer that was set: its delay in milliseconds, whether it keeps the process alive, and whether it is still to fire. */
interface Timer {
  readonly ms: number | undefined;
  readonly isKeeping: boolean;
  readonly isPending: boolean;
}

/**
 * Returns the timers that `work` sets, in order. What an earlier file of this process has left running, such as an attempt to
 * release a lease, may set others at the same time.
 *
 * Not by `vi.spyOn`: Vitest restores what was spied on once more before the next file, which would have the stopped time of this one.
 */
export async function timersOf(work: () => Promise<unknown>): Promise<readonly Timer[]> {
  const ofWork = new AsyncLocalStorage<true>();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const pending = new Set<unknown>();
  const timers: { readonly ms: number | undefined; readonly timer: NodeJS.Timeout }[] = [];
  const noting = (callback: () => void, ms?: number): NodeJS.Timeout => {
    const timer = set(() => {
      pending.delete(timer);
      callback();
    }, ms);
    if (ofWork.getStore()) timers.push({ ms, timer });
    pending.add(timer);
    return timer;
  };
  globalThis.setTimeout = Object.assign(noting, set);
  globalThis.clearTimeout = (timer) => {
    pending.delete(timer);
    clear(timer);
  };
  try {
    await ofWork.run(true, work);
  } finally {
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  }
  return timers.map(({ ms, timer }) => ({ ms, isKeeping: timer.hasRef(), isPending: pending.has(timer) }));
}
