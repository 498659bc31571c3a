import { randomUUID } from 'node:crypto';
import type { TokenStore } from 'passport-oauth-app';
import { type TokenStoreCheck, tokenStoreChecks } from 'passport-oauth-app/conformance';
import { expect, test } from 'vitest';
import { until } from './until.js';

/** Opens a store with this lease, or with the one that it has by default. */
type Open = (options: { readonly lease?: number }) => TokenStore | Promise<TokenStore>;

/** Seconds: short, since two checks wait for its end. */
const LEASE = { lease: 2 };

/** The checks that know the length of the lease. */
const ofLease = ({ name }: TokenStoreCheck): boolean => name.includes('lease');

/** The checks of a store. Only those of the end of a lease have a short one: no other lock ends by itself on a slow machine. */
export function storeChecks(open: Open): TokenStoreCheck[] {
  const others = tokenStoreChecks(() => open({})).filter((check) => !ofLease(check));
  const run = () => keepsLongerLease(open);
  const own = { name: 'a lease keeps its length where another process has a lease of less than half of it', run };
  return [...others, ...tokenStoreChecks(() => open(LEASE), LEASE).filter(ofLease), own];
}

/** While an application is deployed anew, its processes may have other options. */
async function keepsLongerLease(open: Open): Promise<void> {
  const [long, short] = [await open({ lease: 60 }), await open({ lease: 2 })];
  const id = `lease+${randomUUID()}`;
  const order: string[] = [];
  await long.lock?.(id, async () => {
    void short.lock?.(id, async () => order.push('shorter'));
    for (let reads = 0; reads < 20; reads += 1) await short.get(id);
    order.push('longer');
  });
  await until(() => expect(order).toEqual(['longer', 'shorter']));
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
