import { vi } from 'vitest';

/** Waits until the assertion holds, however busy the machine is: what never comes is for the time limit of the test. */
export async function until(assertion: () => unknown): Promise<void> {
  await vi.waitFor(assertion, { timeout: 2 ** 31 - 1, interval: 10 });
}
