import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import { vi } from 'vitest';

/** Time that passes in each turn of the event loop, in milliseconds. */
const STEP_MS = 10;

/**
 * Settles as `work` does, which is given seconds of monotonic time in some turns of the event loop: time limits pass without a wait.
 *
 * @param isDue Whether time passes. Without it, `work` must not need an exchange that a limit could end.
 */
export async function fastForward<T>(work: () => Promise<T>, isDue: () => boolean = () => true): Promise<T> {
  // The emulator's timers come from this module, and stay as they are.
  const { setTimeout, clearTimeout } = timers;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  Object.assign(timers, { setTimeout, clearTimeout });
  syncBuiltinESMExports();
  try {
    let isOver = false;
    const result = work().finally(() => {
      isOver = true;
    });
    result.catch(() => {});
    while (!isOver) {
      await turn();
      if (isDue()) vi.advanceTimersByTime(STEP_MS);
    }
    return await result;
  } finally {
    vi.useRealTimers();
  }
}
