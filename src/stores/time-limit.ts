/**
 * Settles as `promise` does, or rejects with `late()` after `ms` milliseconds. The promise goes on by itself then; its
 * rejection is handled.
 */
export function withTimeout<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
