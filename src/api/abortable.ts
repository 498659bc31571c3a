/**
 * What a promise brings, or the signal's reason as soon as that is aborted. The work behind the promise goes on.
 *
 * @throws the signal's reason
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    const leave = () => signal.removeEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    promise.then(resolve, reject).finally(leave);
  });
}

/**
 * Resolves after `ms` milliseconds.
 *
 * @throws the signal's reason, as soon as it is aborted
 */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const proceed = () => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    };
    const timer = setTimeout(proceed, ms);
    if (signal?.aborted) giveUp();
    else signal?.addEventListener('abort', giveUp, { once: true });
  });
}
