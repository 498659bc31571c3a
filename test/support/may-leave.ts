/** Of the process: a helper keeps the instance of this file with which it was loaded. */
const ALLOWED = Symbol.for('what the running test may leave behind');

/** Says of the running test that something never ends there, such as a store that gives no lock back. @param what As the finding names it. */
export function mayLeave(what: RegExp | undefined): void {
  Reflect.set(globalThis, ALLOWED, what);
}

export const allowed = (): RegExp | undefined => Reflect.get(globalThis, ALLOWED) as RegExp | undefined;
