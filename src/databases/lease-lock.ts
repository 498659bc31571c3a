import { randomUUID } from 'node:crypto';
import { number, withMethods } from '../checks.js';
import { ageOf, momentOf } from '../clock.js';
import { TokenStoreError } from '../errors.js';
import { type HeldLease, MAX_LEASE_SECONDS, ofLength } from '../stores/token-store.js';
import { KeyedQueue, pause, withTimeout } from '../waiting.js';

export type { HeldLease } from '../stores/token-store.js';

/** A lease that a shared store grants to one owner at a time, and that ends by itself. */
export interface Lease {
  /** Takes the lease if it is free or expired; resolves to `false` if another owner has it. Atomic. */
  take(id: string, owner: string): Promise<boolean>;
  /** Releases the lease if `owner` still has it. Atomic. */
  release(id: string, owner: string): Promise<void>;
  /** Resolves to true while `owner` has the lease, as the store sees it. Without this method it counts as held until its end. */
  isHeld?(id: string, owner: string): Promise<boolean>;
}

/** Runs work under the lock of an id: the method `lock` of a token store. */
type LeaseLock = <T>(id: string, work: (lease: HeldLease) => Promise<T>) => Promise<T>;

/** How long a caller tries beyond the longest time that another owner's lease can last, in milliseconds. */
const MARGIN_MS = 5000;

/** How long the store may take to answer who has a lease, in milliseconds. The package's own stores give up before. */
const TAKE_MS = 11_000;

/** Pauses between two attempts to take a lease, in milliseconds: the bounds, and their growth. */
const TAKE_PAUSE_MS = { first: 20, max: 100, growth: 1.5 } as const;

/** The same between two attempts to release one. */
const RELEASE_PAUSE_MS = { first: 50, max: 1000, growth: 2 } as const;

/** How long the result of the work waits for its lease to be released, in milliseconds. */
const RELEASE_MS = 1000;

/**
 * Returns a lock over `lease`: it waits for the turn in this process, takes the lease, runs the work, and releases the
 * lease. A call tries for `leaseMs` and 5 s more, then rejects without running its work. It rejects at once if the
 * store of the lease fails, and after 11 s if that does not answer.
 *
 * The lease is not renewed while the work runs. A holder that takes longer, or is frozen, loses the lock; the versioned
 * `update` then refuses its late write. The work learns how old its lease is: it counts from the moment at which it was
 * asked for, on the clock that shows more. One caller of a process at a time asks the store for an id.
 *
 * @param leaseMs length of a lease, in milliseconds: 1,000 to 600,000
 * @throws {ConfigurationError} naming `lease` or `leaseMs`
 */
export function leaseLock(lease: Lease, leaseMs: number): LeaseLock {
  withMethods<Lease>('an object with the methods take and release', ['take', 'release'], ['isHeld'])('lease', lease);
  number(1000, MAX_LEASE_SECONDS * 1000, 'milliseconds')('leaseMs', leaseMs);
  const queue = new KeyedQueue();
  return ofLength(leaseMs, async (id, work) => {
    const deadline = performance.now() + leaseMs + MARGIN_MS;
    const endTurn = await queue.turn(id, leaseMs + MARGIN_MS, () => lockTimeout('work of this process'));
    try {
      let pauseMs: number = TAKE_PAUSE_MS.first;
      for (;;) {
        const done = await underLease(lease, leaseMs, id, work);
        if (done) return done.result;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) throw lockTimeout('another process');
        // Jitter, so that the waiters of many processes do not ask at the same time.
        await pause(Math.min(leftMs, pauseMs * (1 + Math.random())));
        pauseMs = Math.min(pauseMs * TAKE_PAUSE_MS.growth, TAKE_PAUSE_MS.max);
      }
    } finally {
      endTurn();
    }
  });
}

/** Runs the work under the lease, if that can be had at once. */
async function underLease<T>(
  lease: Lease,
  leaseMs: number,
  id: string,
  work: (lease: HeldLease) => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  const owner = randomUUID();
  // The lease begins after this.
  const askedAt = momentOf(Date.now);
  const taking = lease.take(id, owner);
  const release = (): Promise<void> => releaseLease(lease, id, owner, leaseMs);
  const isTaken = await withTimeout(taking, TAKE_MS, storeTimeout).catch((error: unknown) => {
    // The lease may have been granted all the same, with only the answer lost; or may be yet.
    void release();
    taking.then(release, () => undefined);
    throw error;
  });
  if (!isTaken) return undefined;
  try {
    const ageMs = (): number => ageOf(askedAt, Date.now);
    // This process was frozen, or may have been: the lease may have expired, and have another owner.
    if (ageMs() >= leaseMs) return undefined;
    const isHeld = async (): Promise<boolean> => (await lease.isHeld?.(id, owner)) ?? ageMs() < leaseMs;
    return { result: await work({ leaseMs, ageMs: ageMs(), isHeld }) };
  } finally {
    await release();
  }
}

/**
 * Releases the lease. Resolves after the first attempt, or after a second if that hangs, and never rejects: the work's
 * result must not suffer. After a failure it retries until the lease expires by itself, so that a connection
 * that broke blocks the user no longer than the connection is broken.
 */
async function releaseLease(lease: Lease, id: string, owner: string, leaseMs: number): Promise<void> {
  const endsAt = performance.now() + leaseMs;
  // A custom store may throw synchronously.
  const release = async (): Promise<void> => lease.release(id, owner);
  const first = release();
  first.catch(async () => {
    let pauseMs: number = RELEASE_PAUSE_MS.first;
    for (let isReleased = false; !isReleased && performance.now() < endsAt; ) {
      await pause(pauseMs, { unref: true });
      pauseMs = Math.min(pauseMs * RELEASE_PAUSE_MS.growth, RELEASE_PAUSE_MS.max);
      isReleased = await release().then(
        () => true,
        () => false,
      );
    }
  });
  await withTimeout(first, RELEASE_MS, storeTimeout).catch(() => undefined);
}

function storeTimeout(): TokenStoreError {
  const message = `The token store did not lock a grant within ${TAKE_MS} ms.`;
  return new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_TIMEOUT' });
}

function lockTimeout(holder: string): TokenStoreError {
  const message = `Timed out waiting for the grant's lock, held by ${holder}. The next request tries again.`;
  return new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_LOCKED' });
}
