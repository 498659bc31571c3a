/**
 * Settles as `promise` does, or rejects with `late()` after `ms` milliseconds.
 *
 * What is late goes on by itself: its rejection is taken care of.
 */
export function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
