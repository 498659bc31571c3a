import { vi } from 'vitest';
import { named } from './awaited.js';

/** Waits until the assertion holds, however busy the machine is: what never comes is for the time limit of the test. */
export async function until(assertion: () => unknown): Promise<void> {
  // As it is written: without what Vite makes of imports.
  const text = String(assertion).replaceAll(/\(0,__vite_ssr_import_\d+__\.(\w+)\)|__vite_ssr_import_\d+__\./g, '$1');
  await named(text, vi.waitFor(assertion, { timeout: 2 ** 31 - 1, interval: 10 }));
}
