import type { TokenStore } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { startWire } from '../support/wire.js';
import { startWorld } from '../support/world.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };

/** A store, and the port of its server. */
type Start = () => Promise<{ readonly port: number; readonly open: (port: number) => Promise<Required<TokenStore>> }>;

/** Long: a lease that is not released blocks everybody for the rest of the test. */
const lease = 600;

const stores: readonly (readonly [string, boolean, Start])[] = [
  [
    'Redis',
    hasRedis(),
    async () => {
      const server = await startRedis();
      onTestFinished(() => server.stop());
      const open = async (port: number) => {
        const client = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 20 } });
        await client.on('error', () => {}).connect();
        onTestFinished(() => client.destroy());
        return redisTokenStore(client, { lease }) as Required<TokenStore>;
      };
      return { port: server.port, open };
    },
  ],
  [
    'PostgreSQL',
    hasPostgres(),
    async () => {
      const server = await startPostgres();
      onTestFinished(() => server.stop());
      const open = async (port: number) => {
        const pool = new Pool({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`, max: 1 });
        onTestFinished(() => pool.end());
        return postgresTokenStore(
          pool.on('error', () => {}),
          { lease },
        ) as Required<TokenStore>;
      };
      return { port: server.port, open };
    },
  ],
];

describe.each(stores)('a connection to %s', (_name, isInstalled, start) => {
  test.skipIf(!isInstalled)(
    'that breaks after it has taken a lock, and before the answer, blocks nobody until the lease ends',
    threats(48),
    async () => {
      const { port, open } = await start();
      const wire = await startWire(port);
      const [broken, other] = [await open(wire.port), await open(port)];
      await broken.set('id', grant);
      // Comes after everything that the store still does with its only connection.
      expect(await broken.get('id')).toEqual(grant);
      wire.loseAnswer();
      await expect(broken.lock('id', async () => 'locked')).rejects.toMatchObject({ name: 'TokenStoreError' });
      expect(await other.lock('id', async () => 'free')).toBe('free');
      expect(await broken.lock('id', () => broken.get('id'))).toEqual(grant);
    },
  );

  test.skipIf(!isInstalled)(
    'that delivers the deletion of a logout after the next login ends no login',
    threats(65),
    async () => {
      const { port, open } = await start();
      const wire = await startWire(port);
      const clock = new TestClock();
      const service = await startEmulator({ clock: clock.now, refreshTokenReuse: 'revoke' });
      onTestFinished(() => service.close());
      const startProcess = async (tokenStore: TokenStore) => {
        const grantId = (_req: unknown, user: { id: string }) => user.id;
        const world = await startWorld({ running: service, strategy: { tokenStore, grantId, clock: clock.now } });
        onTestFinished(() => world.close());
        return world;
      };
      const store = await open(wire.port);
      const [one, other] = [await startProcess(store), await startProcess(await open(port))];
      const browser = new Browser();
      await one.logIn(browser, '1');
      expect(await store.get('another')).toBeUndefined();
      wire.hold();
      expect((await browser.visit(`${one.url}/logout`, { method: 'POST' })).status).toBe(503);
      await other.logIn(new Browser(), '1');
      wire.deliver();
      // Comes after the deletion.
      expect(await store.get('another')).toBeUndefined();
      clock.advance(31);
      expect(await other.strategy.client('1').accessToken()).toBeTypeOf('string');
    },
  );
});
