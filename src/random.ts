import { randomFillSync } from 'node:crypto';

/** Bytes that one call of the operating system brings: enough for some thirty logins. */
const POOL_BYTES = 4096;

/**
 * Hands out bytes of the operating system's random generator, each of them once.
 *
 * They are asked for in advance, as `randomUUID` of Node does: a call for each few takes much longer than the bytes.
 */
class Random {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #used = POOL_BYTES;

  /** Returns unguessable bytes, for keys and secrets, and leaves nothing of them behind. @param count At most 4,096 */
  bytes(count: number): Buffer {
    if (this.#used + count > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#used = 0;
    }
    const next = this.#pool.subarray(this.#used, this.#used + count);
    const taken = Buffer.from(next);
    next.fill(0);
    this.#used += count;
    return taken;
  }
}

/** The random bytes of this process. */
export const random: Random = new Random();
