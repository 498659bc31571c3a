import { number, readOptions, withDefault } from '../checks.js';
import { withTimeout } from '../waiting.js';
import { BASIC_CHECKS } from './basic-checks.js';
import { LEASE_CHECKS } from './lease-checks.js';
import { LIST_CHECKS, WATCH_CHECKS } from './listing-checks.js';
import { ADD_CHECKS, LOCK_CHECKS, RACE_CHECKS, UPDATE_CHECKS } from './optional-checks.js';
import { type Check, type CreateStore, startTrial } from './trial.js';

/** One check of a token store, for any test runner. */
export interface TokenStoreCheck {
  /** The behaviour of a correct store, as a sentence: the title of a test. */
  readonly name: string;
  /** Resolves if the store behaves so. Rejects otherwise, usually with an `AssertionError` that shows the difference. */
  run(): Promise<void>;
}

/** Options of {@link tokenStoreChecks}. */
interface TokenStoreCheckOptions {
  /**
   * Seconds of the lease of the stores that `createStore` returns, 0.5 to 5. Three checks wait for it to expire.
   * Without it these are skipped, as their names say, and the lease must be at least 2 s.
   */
  readonly lease?: number | undefined;
}

/** Time limit of one check, in milliseconds. A store that hangs fails its check and not the test runner. */
const LIMIT_MS = 20_000;

/** Longest lease, in seconds: a check waits for its end, and 5 s more, within the time limit. */
const MAX_LEASE_SECONDS = 5;

/**
 * Returns the checks that every store of this package passes, to run against a store of your own. They need nothing but
 * `node:assert`, leave nothing behind in the store, and may run in any order and concurrently.
 *
 * Checks of `update`, `add`, `lock`, `list` and `watch` pass at once for a store without the method. Let each call of
 * `createStore` return a new store over one storage: they stand for the processes of an application, and locks, reads and
 * `watch` are checked across them. A map of
 * locks in a module is shared by all stores of a process, and looks like a lock: import such a module anew for each store.
 *
 * @param createStore returns a store, or a promise of one; called at least once for each check. The stores may share
 *   their storage, with each other and with anything else: all ids are random.
 * @throws {ConfigurationError} naming an option that is wrong or unknown
 *
 * @example
 * import { test } from 'node:test';
 * import { tokenStoreChecks } from 'passport-oauth-app/conformance';
 *
 * for (const { name, run } of tokenStoreChecks(() => myTokenStore({ lease: 2 }), { lease: 2 })) test(name, run);
 */
export function tokenStoreChecks(createStore: CreateStore, options: TokenStoreCheckOptions = {}): TokenStoreCheck[] {
  const { lease } = readOptions('tokenStoreChecks', options, {
    lease: withDefault(undefined, number(0.5, MAX_LEASE_SECONDS, 'seconds')),
  });
  const leaseMs = lease && lease * 1000;
  const checks = [
    ...BASIC_CHECKS,
    ...UPDATE_CHECKS,
    ...RACE_CHECKS,
    ...ADD_CHECKS,
    ...LOCK_CHECKS,
    ...LIST_CHECKS,
    ...WATCH_CHECKS,
  ].map((check) => ({
    name: check.name,
    run: () => runCheck(check, createStore, leaseMs),
  }));
  const leaseChecks = LEASE_CHECKS.map(({ name, run }) =>
    leaseMs === undefined
      ? { name: `${name} (left out: tokenStoreChecks needs the option lease)`, run: async () => undefined }
      : {
          name,
          run: () => runCheck({ name, needs: 'lock', run: (trial) => run(trial, leaseMs) }, createStore, leaseMs),
        },
  );
  return [...checks, ...leaseChecks];
}

async function runCheck(check: Check, createStore: CreateStore, leaseMs: number | undefined): Promise<void> {
  const trial = await startTrial(createStore, leaseMs);
  if (check.needs !== undefined && trial.store[check.needs] === undefined) return;
  try {
    await withTimeout(check.run(trial), LIMIT_MS, () => new Error(`Expected within ${LIMIT_MS} ms: ${check.name}`));
  } finally {
    await withTimeout(trial.cleanUp(), LIMIT_MS, () => new Error('late')).catch(() => undefined);
  }
}
