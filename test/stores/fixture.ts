/** A timer that was set: its delay in milliseconds, and whether it keeps the process alive. */
interface Timer {
  readonly ms: number | undefined;
  readonly isKeeping: boolean;
}

/**
 * Returns the timers that are set while `work` runs, in order.
 *
 * Not by `vi.spyOn`: Vitest restores what was spied on once more before the next file, which would have the stopped time of this one.
 */
export async function timersOf(work: () => Promise<unknown>): Promise<readonly Timer[]> {
  const set = globalThis.setTimeout;
  const timers: { readonly ms: number | undefined; readonly timer: NodeJS.Timeout }[] = [];
  const noting = (callback: () => void, ms?: number): NodeJS.Timeout => {
    const timer = set(callback, ms);
    timers.push({ ms, timer });
    return timer;
  };
  globalThis.setTimeout = Object.assign(noting, set);
  try {
    await work();
  } finally {
    globalThis.setTimeout = set;
  }
  return timers.map(({ ms, timer }) => ({ ms, isKeeping: timer.hasRef() }));
}
