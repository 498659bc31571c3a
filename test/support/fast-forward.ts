import { subscribe, unsubscribe } from 'node:diagnostics_channel';
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

/**
 * Settles as `work` does, whose pauses between exchanges with a server pass without a wait: time passes while no request to it is
 * under way.
 *
 * @param origin Of the server.
 */
export async function withoutPauses<T>(work: () => Promise<T>, origin: string): Promise<T> {
  let exchanges = 0;
  const count = (message: unknown, name: string | symbol) => {
    const isOfServer = String(Reflect.get(Reflect.get(Object(message), 'request'), 'origin')) === origin;
    if (isOfServer) exchanges += name === 'undici:request:create' ? 1 : -1;
  };
  const names = ['create', 'trailers', 'error'].map((name) => `undici:request:${name}`);
  for (const name of names) subscribe(name, count);
  try {
    return await fastForward(work, () => exchanges === 0);
  } finally {
    for (const name of names) unsubscribe(name, count);
  }
}
