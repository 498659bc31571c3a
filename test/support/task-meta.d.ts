import 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** Lines of the threat model that a test shows to hold: `docs/security.md` lists them. */
    readonly threats?: readonly number[];
  }
}
