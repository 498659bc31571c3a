import { startEmulator } from 'passport-oauth-app/emulator';
import { expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { type SharedStore, Worker } from '../support/processes.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { startWire } from '../support/wire.js';
import { byUser, startWorld } from '../support/world.js';
import { overEachStore, store } from './fleet.js';

/** The address of a store with another port in it. */
const behind = (shared: SharedStore, from: number, to: number): SharedStore =>
  JSON.parse(JSON.stringify(shared).replace(`:${from}`, `:${to}`));

/** Longer than any test: what holds earlier was told. */
const cache = { max: 100, ttl: 3600 };

overEachStore('a grant in %s that another process deletes', threats(92), (name) => {
  /** What a connection sends on which changes are told. */
  const listen = name === 'Redis' ? 'subscribe' : 'LISTEN';

  /** Two processes with long caches, one of them behind a wire; each has the grant of the user in its cache. */
  async function startTwo() {
    const service = await startEmulator();
    const strategy = { tokenStore: store.tokenStore, grantId: byUser };
    const world = await startWorld({ running: service, strategy });
    const shared = store.shared(30);
    const port = Number(/:(\d+)/.exec(JSON.stringify(shared))?.[1]);
    const wire = await startWire(port);
    const options = { ...service.options, cache };
    const addresses = [shared, behind(shared, port, wire.port)];
    const started = await Promise.all(addresses.map((address) => Worker.start(address, options)));
    const [deleting, using] = started as [Worker, Worker];
    onTestFinished(async () => {
      await Promise.all([deleting.release(), using.release()]);
      await world.close();
      await service.close();
    });
    const logIn = async () => {
      await world.logIn(new Browser(), '1');
      await until(async () => expect((await using.ask('1')).status).toBe(200));
    };
    await logIn();
    // Until it is answered, the connection may still tell that anything may have changed.
    await until(() => expect(wire.answered(listen)).toBe(1));
    return { wire, deleting, using, logIn };
  }

  test('is refused at once, long before the cache is too old', async () => {
    const { deleting, using, logIn, wire } = await startTwo();
    for (let round = 0; round < 3; round += 1) {
      await deleting.deleteGrant('1');
      await until(async () => expect((await using.ask('1')).status).toBe(401));
      await logIn();
    }
    expect(wire.count(listen)).toBe(1);
  });

  test('while nothing can be told is refused as soon as the connection is back', async () => {
    const { deleting, using, wire } = await startTwo();
    // Two in a row: the answer to the first may still find a read that the opened connection has caused.
    for (const _ of [1, 2]) expect((await using.ask('1')).status).toBe(200);
    wire.cut(listen);
    await deleting.deleteGrant('1');
    for (const _ of [1, 2, 3]) expect((await using.ask('1')).status).toBe(200);
    wire.mend();
    await until(async () => expect((await using.ask('1')).status).toBe(401));
  });

  test('is told on one connection, which the closed strategy does not leave behind', async () => {
    const { using, wire } = await startTwo();
    await using.close();
    await until(() => expect(wire.count(listen)).toBe(0));
  });
});
