import { withTimeout } from '../waiting.js';
import { BASIC_CHECKS } from './basic-checks.js';
import { ADD_CHECKS, LOCK_CHECKS, UPDATE_CHECKS } from './optional-checks.js';
import { type Check, type CreateStore, startTrial } from './trial.js';

export type { CreateStore } from './trial.js';

/** One check of a token store, for any test runner. */
export interface TokenStoreCheck {
  /** The behaviour of a correct store, as a sentence: the title of a test. */
  readonly name: string;
  /** Resolves if the store behaves so. Rejects otherwise, usually with an `AssertionError` that tells the difference. */
  run(): Promise<void>;
}

/** Time limit of one check, in milliseconds. A store that hangs fails its check and not the test runner. */
const LIMIT_MS = 20_000;

/**
 * Returns the checks that every store of this package passes, to run against a store of your own. They need nothing but
 * `node:assert`, leave nothing behind in the store, and may run in any order and concurrently.
 *
 * Checks of `update`, `add` and `lock` pass at once for a store without the method. If `createStore` returns stores over one
 * storage, the lock is checked across them.
 *
 * @param createStore returns a store, or a promise of one; called at least once for each check. The stores may share
 *   their storage, with each other and with anything else: all ids are random.
 *
 * @example
 * import { test } from 'node:test';
 * import { tokenStoreChecks } from 'passport-oauth-app/conformance';
 *
 * for (const { name, run } of tokenStoreChecks(() => myTokenStore())) test(name, run);
 */
export function tokenStoreChecks(createStore: CreateStore): TokenStoreCheck[] {
  return [...BASIC_CHECKS, ...UPDATE_CHECKS, ...ADD_CHECKS, ...LOCK_CHECKS].map((check) => ({
    name: check.name,
    run: () => runCheck(check, createStore),
  }));
}

async function runCheck(check: Check, createStore: CreateStore): Promise<void> {
  const trial = await startTrial(createStore);
  if (check.needs !== undefined && trial.store[check.needs] === undefined) return;
  try {
    await withTimeout(check.run(trial), LIMIT_MS, () => new Error(`Expected within ${LIMIT_MS} ms: ${check.name}`));
  } finally {
    await withTimeout(trial.cleanUp(), LIMIT_MS, () => new Error('late')).catch(() => undefined);
  }
}
