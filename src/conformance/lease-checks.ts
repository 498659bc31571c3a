import assert from 'node:assert/strict';
import type { HeldLease, TokenStore } from '../stores/token-store.js';
import { pause, withTimeout } from '../waiting.js';
import { LONGER_THAN_A_POLL_MS } from './optional-checks.js';
import type { LeaseCheck, Trial } from './trial.js';

/** How long after its end a lease may be taken for held, in milliseconds. */
const MARGIN_MS = 5000;

/** Pause after a lock that could not be had, in milliseconds. */
const PAUSE_MS = 20;

/** A lock that is held until its work ends. */
interface Holder {
  readonly lease: HeldLease | undefined;
  /** Ends the work. Resolves when the lock was released. */
  end(): Promise<unknown>;
}

/** Checks of a lock that ends by itself. Each store stands for a process. */
export const LEASE_CHECKS: readonly LeaseCheck[] = [
  {
    name: 'the lock of a holder that died is free again once its lease expires',
    run: async (trial, leaseMs) => {
      const id = trial.newId();
      const [dead, next] = await processes(trial, 2);
      const first = await hold(dead, id);
      try {
        const second = await holdWithin(leaseMs + MARGIN_MS, next, id);
        assert.ok(second, `Expected the lock to be free ${MARGIN_MS} ms after the end of a lease of ${leaseMs} ms`);
        await second.end();
      } finally {
        await first.end();
      }
    },
  },
  {
    name: 'a holder learns the length of its lease, and that the lease is not held once another one has it',
    run: async (trial, leaseMs) => {
      const id = trial.newId();
      const [late, next] = await processes(trial, 2);
      const { lease, end } = await hold(late, id);
      try {
        if (!lease) return;
        // Less than the store's, as a margin for clocks, does no harm.
        assert.ok(
          lease.leaseMs > 0 && lease.leaseMs <= Math.ceil(leaseMs),
          `the store reports a lease of ${lease.leaseMs} ms`,
        );
        const second = await holdWithin(leaseMs + MARGIN_MS, next, id);
        const isHeld = second !== undefined && (await lease.isHeld());
        await second?.end();
        assert.equal(isHeld, false, 'another one has the lease');
      } finally {
        await end();
      }
    },
  },
  {
    name: 'a holder that outlives its lease does not free the lock of the next one',
    run: async (trial, leaseMs) => {
      while ((await outlive(trial, leaseMs)) === 'too slow');
    },
  },
];

/** Lets a holder outlive its lease. Resolves to `too slow` if the next holder's lease may have expired too. */
async function outlive(trial: Trial, leaseMs: number): Promise<'passed' | 'too slow'> {
  const id = trial.newId();
  const [late, next, third] = await processes(trial, 3);
  const askedAt = performance.now();
  const first = await hold(late, id);
  const second = await holdWithin(leaseMs + MARGIN_MS, next, id);
  // With no lock between processes, or none that ends, other checks fail.
  const hasWaited = performance.now() - askedAt > leaseMs / 2;
  await first.end();
  if (second === undefined) return 'passed';
  let hasThird = false;
  const waiting = hold(third, id).then((holder) => {
    hasThird = true;
    return holder.end();
  });
  await pause(Math.min(LONGER_THAN_A_POLL_MS, leaseMs / 2));
  const wasFreed = hasThird;
  // The second lease began when the first one had ended.
  const isSlow = performance.now() - askedAt >= 2 * leaseMs;
  await second.end();
  await waiting;
  if (!hasWaited || !wasFreed) return 'passed';
  assert.ok(isSlow, 'a third one got the lock while the second had it');
  return 'too slow';
}

/** Returns different stores over one storage. @throws Error if `createStore` makes none */
async function processes(trial: Trial, count: number): Promise<readonly TokenStore[]> {
  const stores = await trial.stores(count);
  if (new Set(stores).size === count) return stores;
  throw new Error(
    'Expected createStore to return a new store over the same storage at each call, as processes have them',
  );
}

/** Resolves once the lock is held. Rejects if it cannot be had. */
function hold(store: TokenStore | undefined, id: string): Promise<Holder> {
  return new Promise((resolve, reject) => {
    const work = (lease?: HeldLease): Promise<void> =>
      new Promise((endWork) => {
        const end = (): Promise<unknown> => {
          endWork();
          return locked;
        };
        resolve({ lease, end });
      });
    const locked = Promise.resolve(store?.lock?.(id, work));
    locked.catch(reject);
  });
}

/** The same, where a store may give up sooner. Resolves to `undefined` if the lock cannot be had within the time. */
async function holdWithin(ms: number, store: TokenStore | undefined, id: string): Promise<Holder | undefined> {
  let isLate = false;
  const trying = async (): Promise<Holder | undefined> => {
    while (!isLate) {
      const holder = await hold(store, id).catch(() => undefined);
      if (holder && !isLate) return holder;
      await (holder?.end() ?? pause(PAUSE_MS));
    }
    return undefined;
  };
  const late = (): Error => {
    isLate = true;
    return new Error('late');
  };
  return withTimeout(trying(), ms, late).catch(() => undefined);
}
