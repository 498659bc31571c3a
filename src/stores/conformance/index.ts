import { withTimeout } from '../time-limit.js';
import { BASIC_CHECKS } from './basic-checks.js';
import { LOCK_CHECKS } from './lock-checks.js';
import { type Check, type CreateStore, startTrial } from './trial.js';
import { UPDATE_CHECKS } from './update-checks.js';

export type { CreateStore } from './trial.js';

/** One check of a token store, for any test runner. */
export interface TokenStoreCheck {
  /** What a right store does, as a sentence: the title of a test. */
  readonly name: string;
  /** Resolves if the store does so; else rejects, mostly with an `AssertionError` that says what it did instead. */
  run(): Promise<void>;
}

/** Milliseconds that one check may take: a store that hangs fails its check rather than the runner. */
const LIMIT_MS = 20_000;

/**
 * The checks that every store of this package passes, to run against one of your own. They need nothing but
 * `node:assert`, leave nothing behind in the store, and may run in any order and beside each other.
 *
 * Checks of `update` and `lock` pass at once for a store that has no such method. Stores that see each other's
 * grants are tried for a lock that holds between them; stores that do not, each by itself.
 *
 * @param createStore gives a store, or promises one; called at least once for each check. The stores may share their
 *   storage, with each other and with anything else: all ids are random.
 *
 * @example
 * import { test } from 'node:test';
 * import { tokenStoreChecks } from 'passport-oauth-app/conformance';
 *
 * for (const { name, run } of tokenStoreChecks(() => myTokenStore())) test(name, run);
 */
export function tokenStoreChecks(createStore: CreateStore): TokenStoreCheck[] {
  return [...BASIC_CHECKS, ...UPDATE_CHECKS, ...LOCK_CHECKS].map((check) => ({
    name: check.name,
    run: () => runCheck(check, createStore),
  }));
}

async function runCheck(check: Check, createStore: CreateStore): Promise<void> {
  const trial = await startTrial(createStore);
  if (check.needs !== undefined && trial.store[check.needs] === undefined) return;
  try {
    await withTimeout(check.run(trial), LIMIT_MS, () => new Error(`not done within ${LIMIT_MS} ms: ${check.name}`));
  } finally {
    await withTimeout(trial.cleanUp(), LIMIT_MS, () => new Error('late')).catch(() => undefined);
  }
}
