/** A timer that is later than this, in milliseconds, follows a suspension or a busy event loop: an answer may wait to be read. */
const LATE_MS = 500;

/** How long such an answer is waited for, in milliseconds. */
const GRACE_MS = 20;

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
    const dueAt = performance.now() + ms;
    const expire = (): void => reject(late());
    timer = setTimeout(() => {
      // Timers run before sockets are read.
      if (performance.now() - dueAt > LATE_MS) timer = setTimeout(expire, GRACE_MS);
      else expire();
    }, ms);
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
