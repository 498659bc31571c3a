/** What the running tests wait for: a test that hangs names it. */
export const awaited: Set<string> = new Set();

/** Settles as the promise does. @param what Names it. */
export function named<T>(what: string, promise: Promise<T>): Promise<T> {
  awaited.add(what);
  return promise.finally(() => awaited.delete(what));
}
