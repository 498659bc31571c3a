/** What the running tests wait for: a test that hangs names it. */
export const awaited: ReadonlySet<string> = new Set();

/** Settles as the promise does. @param what Names it. */
export async function named<T>(what: string, promise: Promise<T>): Promise<T> {
  const names = awaited as Set<string>;
  names.add(what);
  try {
    return await promise;
  } finally {
    names.delete(what);
  }
}
