/**
 * Settles as `promise` does, or rejects with `late()` after `ms` milliseconds. A late promise goes on by itself; its
 * rejection is handled.
 *
 * @param lateNow holds, while the promise is pending, a function that rejects it as late at once
 */
export function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  late: () => Error,
  lateNow?: Set<() => void>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const giveUp = () => {
      end();
      reject(late());
    };
    const timer = setTimeout(giveUp, ms);
    lateNow?.add(giveUp);
    const end = () => {
      clearTimeout(timer);
      lateNow?.delete(giveUp);
    };
    promise.then(
      (value) => {
        end();
        resolve(value);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}
