import { startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import type { SharedStore } from '../support/processes.js';
import { Worker } from '../support/processes.js';
import { until } from '../support/until.js';
import { startWire } from '../support/wire.js';
import { startWorld } from '../support/world.js';
import { type StoreServer, stores } from './fleet.js';

/** Where a store is, by its port, and what a connection sends on which changes are told. */
const addresses: Readonly<Record<string, (port: number) => SharedStore>> = {
  Redis: (port) => ({ redis: `redis://127.0.0.1:${port}` }),
  PostgreSQL: (port) => ({ postgres: `postgres://postgres@127.0.0.1:${port}/postgres` }),
};
const listening: Readonly<Record<string, string>> = { Redis: 'subscribe', PostgreSQL: 'LISTEN' };

/** Longer than any test: what holds earlier was told. */
const cache = { max: 100, ttl: 3600 };

describe.each(stores)(
  'a grant in %s that another process deletes',
  { meta: { threats: [92] } },
  (name, isInstalled, start) => {
    let store: StoreServer;
    const [address = () => ({ redis: '' }), listen = ''] = [addresses[name], listening[name]];

    beforeAll(async () => {
      if (isInstalled) store = await start();
    });
    afterAll(() => store?.stop());

    /** Two processes with long caches, one of them behind a wire; each has the grant of the user in its cache. */
    async function startTwo() {
      const service = await startEmulator();
      const byUser = { tokenStore: store.tokenStore, grantId: (_req: unknown, user: { id: string }) => user.id };
      const world = await startWorld({ running: service, strategy: byUser });
      const shared = store.shared(30);
      const port = Number(new URL('redis' in shared ? shared.redis : (shared as { postgres: string }).postgres).port);
      const wire = await startWire(port);
      const options = { ...service.options, cache };
      const [deleting, using] = await Promise.all([
        Worker.start(address(port), options),
        Worker.start(address(wire.port), options),
      ]);
      onTestFinished(async () => {
        await Promise.all([deleting.kill(), using.kill()]);
        await world.close();
        await service.close();
      });
      const logIn = async () => {
        await world.logIn(new Browser(), '1');
        await until(async () => expect((await using.ask('1')).status).toBe(200));
      };
      await logIn();
      await until(() => expect(wire.count(listen)).toBe(1));
      return { wire, deleting, using, logIn };
    }

    test.skipIf(!isInstalled)('is refused at once, long before the cache is too old', async () => {
      const { deleting, using, logIn, wire } = await startTwo();
      for (let round = 0; round < 3; round += 1) {
        await deleting.deleteGrant('1');
        await until(async () => expect((await using.ask('1')).status).toBe(401));
        await logIn();
      }
      expect(wire.count(listen)).toBe(1);
    });

    test.skipIf(!isInstalled)('while nothing can be told is refused as soon as the connection is back', async () => {
      const { deleting, using, wire } = await startTwo();
      // Two in a row: the answer to the first may still find a read that the opened connection has caused.
      for (const _ of [1, 2]) expect((await using.ask('1')).status).toBe(200);
      wire.cut(listen);
      await deleting.deleteGrant('1');
      for (const _ of [1, 2, 3]) expect((await using.ask('1')).status).toBe(200);
      wire.mend();
      await until(async () => expect((await using.ask('1')).status).toBe(401));
    });

    test.skipIf(!isInstalled)(
      'is told on one connection, which the closed strategy does not leave behind',
      async () => {
        const { using, wire } = await startTwo();
        await using.close();
        await until(() => expect(wire.count(listen)).toBe(0));
      },
    );
  },
);
