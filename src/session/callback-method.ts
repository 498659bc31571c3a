/** Waits for a method of Passport or of a session that takes a callback, or returns a promise, or does both. Rejects with its error. */
export function settle(call: (done: (error?: unknown) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    callOnce(call, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Calls a method that takes a callback, or returns a promise of any library, or does both. `done` is called by the first of
 * them, once.
 *
 * @returns what the method has returned
 */
export function callOnce(call: (once: (error?: unknown) => void) => unknown, done: (error?: unknown) => void): unknown {
  let isDone = false;
  const once = (error?: unknown) => {
    if (isDone) return;
    isDone = true;
    done(error);
  };
  const returned = call(once);
  if (typeof returned === 'object' && returned !== null && 'then' in returned) {
    Promise.resolve(returned).then(
      () => once(),
      (error: unknown) => once(error || new Error('A promise was rejected without a reason')),
    );
  }
  return returned;
}
