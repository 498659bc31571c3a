import type { TokenStore } from 'passport-oauth-app';
import { type TokenStoreCheck, tokenStoreChecks } from 'passport-oauth-app/conformance';
import { test } from 'vitest';

/** Opens a store with this lease, or with the one that it has by default. */
type Open = (options: { readonly lease?: number }) => TokenStore | Promise<TokenStore>;

/** Seconds: short, since two checks wait for its end. */
const LEASE = { lease: 2 };

/** The checks that know the length of the lease. */
const ofLease = ({ name }: TokenStoreCheck): boolean => name.includes('lease');

/** The checks of a store. Only those of the end of a lease have a short one: no other lock ends by itself on a slow machine. */
export function storeChecks(open: Open): TokenStoreCheck[] {
  const others = tokenStoreChecks(() => open({})).filter((check) => !ofLease(check));
  return [...others, ...tokenStoreChecks(() => open(LEASE), LEASE).filter(ofLease)];
}

/** Declares a test for each of the checks. Those that wait for the end of a lease wait at the same time. */
export function testEach(checks: readonly TokenStoreCheck[]): void {
  for (const check of checks) (ofLease(check) ? test.concurrent : test)(check.name, check.run);
}

/**
 * Runs all checks of each store: one after the other, since each has a time limit, which is not for the commands of forty others. Those
 * that wait for the end of a lease run beside them.
 */
export async function passEveryCheck(...stores: readonly Open[]): Promise<void> {
  const checks = stores.flatMap(storeChecks);
  const inTurn = async (): Promise<void> => {
    for (const check of checks) if (!ofLease(check)) await check.run();
  };
  await Promise.all([inTurn(), ...checks.filter(ofLease).map(({ run }) => run())]);
}
