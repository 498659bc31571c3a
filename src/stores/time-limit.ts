/**
 * Settles as `promise` does, rejects with `late()` after `ms` milliseconds, or with the reason of `signal` when that
 * aborts. The promise goes on by itself then; its rejection is handled.
 */
export async function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), ms);
    abort = () => reject(signal?.reason);
  });
  signal?.addEventListener('abort', abort);
  if (signal?.aborted) abort();
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
