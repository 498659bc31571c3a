import type { TokenStore } from 'passport-oauth-app';
import { expect, test } from 'vitest';
import { mayLeave } from '../support/may-leave.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const TABLE = 'passport_oauth_app_grants';

/** A database, and the token store over it. */
interface SqlStore {
  /** Opens a store with a pool of its own. */
  readonly open: (options?: { table?: string; ttl?: number; lease?: number }) => Required<Omit<TokenStore, 'watch'>>;
  /** Runs a statement and returns its rows. */
  readonly query: (sql: string) => Promise<unknown>;
  /** The time of the database, in SQL. */
  readonly now: string;
  /** The whole seconds until `expires_at`, in SQL. */
  readonly secondsLeft: string;
}

/** Tests what every token store over SQL does with its table. */
export function testSqlStore({ open, query, now, secondsLeft }: SqlStore): void {
  test('creates its table once when many processes miss it at the same moment', async () => {
    const stores = Array.from({ length: 20 }, () => open({ table: 'made_at_once' }));
    await Promise.all(stores.map((store, index) => store.set(`id${index}`, grant)));
    expect(await stores[0]?.get('id19')).toEqual(grant);
  });

  test('counts the time to live anew at each write, and takes a row past it for absent', async () => {
    const store = open({ ttl: 100_000 });
    const expectWholeTime = async () => {
      const [row] = (await query(`SELECT ${secondsLeft} AS s FROM ${TABLE} WHERE id = 'ttl'`)) as [{ s: unknown }];
      expect(Number(row.s)).toBeGreaterThan(99_000);
      expect(Number(row.s)).toBeLessThanOrEqual(100_000);
    };
    await store.set('ttl', grant);
    await expectWholeTime();
    await query(`UPDATE ${TABLE} SET expires_at = ${now} - INTERVAL '1' SECOND WHERE id = 'ttl'`);
    expect(await store.get('ttl')).toBeUndefined();
    expect(await store.update('ttl', grant, 1)).toBe(false);
    expect(await store.add('ttl', grant)).toBe(true);
    expect(await store.get('ttl')).toEqual(grant);
    await query(`UPDATE ${TABLE} SET expires_at = ${now} + INTERVAL '9' MINUTE WHERE id = 'ttl'`);
    expect(await store.update('ttl', grant, 1)).toBe(true);
    await expectWholeTime();
  });

  test('leaves no lock behind', async () => {
    const rows = () => query(`SELECT version FROM ${TABLE} WHERE id LIKE '%traceless'`);
    expect(await open().lock('traceless', rows)).toHaveLength(1);
    expect(await rows()).toEqual([]);
  });

  test('treats a damaged record as no grant', async () => {
    const store = open();
    await store.set('spoilt', grant);
    await query(`UPDATE ${TABLE} SET record = LEFT(record, 10) WHERE id = 'spoilt'`);
    expect(await store.get('spoilt')).toBeUndefined();
  });

  test('takes over a lease that ends too late, as after the clock was set back, and tells its holder', async () => {
    const store: TokenStore = open();
    await store.lock?.('clock', async (lease) => {
      expect(await lease?.isHeld()).toBe(true);
      await query(`UPDATE ${TABLE} SET expires_at = expires_at + INTERVAL '3' HOUR WHERE id = 'lock clock'`);
      await open().lock('clock', async () => expect(await lease?.isHeld()).toBe(false));
    });
  });

  test('refuses the late write of a holder that lost its lock, which does not free the lock of the next one', async () => {
    mayLeave(/#tails/);
    const [late, next] = [open({ lease: 1 }), open({ lease: 30 })];
    await late.set('late', grant);
    await late.lock('late', async () => {
      await new Promise<void>((resolve) => {
        void next.lock('late', () => {
          resolve();
          return new Promise(() => undefined);
        });
      });
      expect(await next.update('late', { ...grant, version: 2 }, 1)).toBe(true);
      expect(await late.update('late', { ...grant, version: 3 }, 1)).toBe(false);
    });
    expect(await query(`SELECT version FROM ${TABLE} WHERE id = 'lock late'`)).toHaveLength(1);
    expect(await next.get('late')).toEqual({ ...grant, version: 2 });
  });
}
