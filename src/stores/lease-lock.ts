import { randomUUID } from 'node:crypto';
import { number, type Optional, withDefault } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { KeyedQueue, withTimeout } from './waiting.js';

/** A lease that a shared store grants to one owner at a time, and that ends by itself. */
export interface Lease {
  /** Takes the lease if it is free or has ended; resolves to `false` if another owner has it. Atomic. */
  take(id: string, owner: string): Promise<boolean>;
  /** Releases the lease if `owner` still has it. */
  release(id: string, owner: string): Promise<void>;
}

/** How long a caller tries beyond the longest time that another owner's lease can last, in milliseconds. */
const MARGIN_MS = 5000;

/** Pauses between two attempts to take a lease, in milliseconds: the bounds, and their growth. */
const TAKE_PAUSE_MS = { first: 20, max: 100, growth: 1.5 } as const;

/** The same between two attempts to release one. */
const RELEASE_PAUSE_MS = { first: 50, max: 1000, growth: 2 } as const;

/** How long the result of the work waits for its lease to be released, in milliseconds. */
const RELEASE_MS = 1000;

/** A refresh seldom takes more than 20 seconds: one HTTP request of 10 s and a second attempt. */
export const DEFAULT_LEASE_SECONDS = 30;

/** Longest lease, in seconds: a holder that died keeps its user waiting for as long. */
const MAX_LEASE_SECONDS = 600;

/** Reads the option `lease` of a store: seconds. */
export const leaseSeconds: Optional<number> = withDefault(
  DEFAULT_LEASE_SECONDS,
  number(1, MAX_LEASE_SECONDS, 'seconds'),
);

/**
 * Returns a lock over `lease`: it waits for the turn in this process, takes the lease, runs the work, and releases the
 * lease. A call tries for `leaseMs` and 5 s more, then rejects without running its work. It rejects at once if the
 * store of the lease fails.
 *
 * The lease is not renewed while the work runs. A holder that takes longer, or is frozen, loses the lock; the versioned
 * `update` then refuses its late write. One caller of a process at a time asks the store for an id.
 */
export function leaseLock(lease: Lease, leaseMs: number): <T>(id: string, work: () => Promise<T>) => Promise<T> {
  const line = new KeyedQueue();
  return async function lock(id, work) {
    const deadline = performance.now() + leaseMs + MARGIN_MS;
    const endTurn = await ownTurn(line, id, leaseMs + MARGIN_MS);
    try {
      const owner = await takeLease(lease, id, leaseMs, deadline);
      try {
        return await work();
      } finally {
        await releaseLease(lease, id, owner, leaseMs);
      }
    } finally {
      endTurn();
    }
  };
}

/** Waits until the earlier callers of this process have finished. A caller that gives up lets the next one through in its turn. */
async function ownTurn(line: KeyedQueue, id: string, limitMs: number): Promise<() => void> {
  const turn = line.turn(id);
  try {
    return await withTimeout(turn, limitMs, () => lockTimeout('this process still runs work for the same grant'));
  } catch (error) {
    void turn.then((endTurn) => endTurn());
    throw error;
  }
}

/** Resolves to the owner's name once the lease is taken; rejects at the deadline. */
async function takeLease(lease: Lease, id: string, leaseMs: number, deadline: number): Promise<string> {
  for (
    let pauseMs: number = TAKE_PAUSE_MS.first;
    ;
    pauseMs = Math.min(pauseMs * TAKE_PAUSE_MS.growth, TAKE_PAUSE_MS.max)
  ) {
    const owner = randomUUID();
    const askedAt = performance.now();
    const isTaken = await lease.take(id, owner).catch((error: unknown) => {
      // The lease may have been granted all the same, with only the answer lost.
      void releaseLease(lease, id, owner, leaseMs);
      throw error;
    });
    if (isTaken && performance.now() - askedAt < leaseMs) return owner;
    // This process was frozen until now: the lease may have ended, and belong to another owner.
    if (isTaken) await releaseLease(lease, id, owner, leaseMs);
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) throw lockTimeout('another process holds it');
    // Jitter, so that the waiters of many processes do not ask at the same time.
    await pause(Math.min(leftMs, pauseMs * (1 + Math.random())));
  }
}

/**
 * Releases the lease. Resolves after the first attempt, or after a second if that hangs, and never rejects: the work's
 * result must not suffer. After a failure it goes on trying until the lease has ended by itself, so that a connection
 * that broke blocks the user no longer than the connection is broken.
 */
async function releaseLease(lease: Lease, id: string, owner: string, leaseMs: number): Promise<void> {
  const endsAt = performance.now() + leaseMs;
  const first = lease.release(id, owner);
  first.catch(async () => {
    let pauseMs: number = RELEASE_PAUSE_MS.first;
    for (let isReleased = false; !isReleased && performance.now() < endsAt; ) {
      await pause(pauseMs, { unref: true });
      pauseMs = Math.min(pauseMs * RELEASE_PAUSE_MS.growth, RELEASE_PAUSE_MS.max);
      isReleased = await lease.release(id, owner).then(
        () => true,
        () => false,
      );
    }
  });
  await withTimeout(first, RELEASE_MS, () => lockTimeout('it is not released')).catch(() => undefined);
}

function pause(ms: number, { unref = false } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (unref) timer.unref();
  });
}

function lockTimeout(reason: string): TokenStoreError {
  return new TokenStoreError(`Expected to lock the grant in time: ${reason}. The next request tries again.`, {
    code: 'ERR_TOKEN_STORE_LOCKED',
  });
}
