import { TokenStoreError } from '../errors.js';

/**
 * Settles as `promise` does, but rejects with a {@link TokenStoreError} after `ms` milliseconds. What `promise`
 * comes to later is ignored.
 */
export async function within<T>(promise: Promise<T>, ms: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TokenStoreError(message)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
