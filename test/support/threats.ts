import type { TestOptions } from 'vitest';

/** Options of a test, or of a group, that shows lines of the threat model to hold: `docs/figures/security.md` lists them. */
export const threats = (...numbers: readonly number[]): TestOptions => ({ meta: { threats: numbers } });
