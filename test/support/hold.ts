import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import { expect } from 'vitest';
import type { Endpoint, Fault } from '../../src/emulator/faults.js';
import type { Emulator } from '../../src/emulator/index.js';

/** The delay of a held request, in milliseconds. No other timer has it, and it never passes. */
const HELD_MS = 2 ** 31 - 2;

/** Holds the next request to an endpoint until the returned function is called. Then it is served, or meets the fault. */
export function hold(service: Emulator, endpoint: Endpoint, fault: Fault = {}): () => void {
  const start = timers.setTimeout;
  let release = (): void => expect.fail('The request that is to be released has not come');
  const replaceTimer = (setTimeout: unknown) => {
    Object.assign(timers, { setTimeout });
    syncBuiltinESMExports();
  };
  replaceTimer((end: () => void, ms: number) => {
    if (ms === HELD_MS) {
      release = end;
      replaceTimer(start);
    }
    return start(end, ms);
  });
  service.fail(endpoint, { ...fault, delay: HELD_MS });
  return () => release();
}
