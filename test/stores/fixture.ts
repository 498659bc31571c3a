import { AsyncLocalStorage } from 'node:async_hooks';

/** A timer that was set: its delay in milliseconds, and whether it keeps the process alive. */
interface Timer {
  readonly ms: number | undefined;
  readonly isKeeping: boolean;
}

/**
 * Returns the timers that `work` sets, in order. What an earlier file of this process has left running, such as an attempt to
 * release a lease, may set others at the same time.
 *
 * Not by `vi.spyOn`: Vitest restores what was spied on once more before the next file, which would have the stopped time of this one.
 */
export async function timersOf(work: () => Promise<unknown>): Promise<readonly Timer[]> {
  const ofWork = new AsyncLocalStorage<true>();
  const set = globalThis.setTimeout;
  const timers: { readonly ms: number | undefined; readonly timer: NodeJS.Timeout }[] = [];
  const noting = (callback: () => void, ms?: number): NodeJS.Timeout => {
    const timer = set(callback, ms);
    if (ofWork.getStore()) timers.push({ ms, timer });
    return timer;
  };
  globalThis.setTimeout = Object.assign(noting, set);
  try {
    await ofWork.run(true, work);
  } finally {
    globalThis.setTimeout = set;
  }
  return timers.map(({ ms, timer }) => ({ ms, isKeeping: timer.hasRef() }));
}
