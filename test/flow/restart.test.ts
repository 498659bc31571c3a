import session from 'express-session';
import { afterEach, describe, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { memoryTokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { byUser, startWorld, type World } from '../support/world.js';

const HOURS = 3600;

let service: Emulator;
const worlds: World[] = [];
afterEach(async () => {
  await Promise.all(worlds.splice(0).map((world) => world.close()));
  await service.close();
});

describe.each([
  ['beside the sessions', () => undefined],
  ['in a store of their own', memoryTokenStore],
])('a process that is started again, with the grants %s,', (_where, tokenStore) => {
  test('has all users logged in still, with valid tokens and with expired ones', async () => {
    const clock = new TestClock();
    service = await startEmulator({ clock: clock.now });
    const sessions = new session.MemoryStore();
    const grants = tokenStore();
    const start = async () => {
      const world = await startWorld({
        running: service,
        session: { store: sessions },
        strategy: { clock: clock.now, ...(grants ? { tokenStore: grants } : {}) },
      });
      worlds.push(world);
      return world;
    };
    const first = await start();
    const browser = new Browser();
    await first.logIn(browser);
    await worlds.splice(0)[0]?.close();
    for (const age of [0, 2 * HOURS, 48 * HOURS]) {
      clock.advance(age);
      const next = await start();
      for (const [name, value] of browser.cookies(first.url)) browser.cookies(next.url).set(name, value);
      expect((await browser.visit(`${next.url}/projects`)).status).toBe(200);
      await worlds.splice(0)[0]?.close();
    }
    expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(3);
  });
});

describe('a process that dies', { meta: { threats: [46] } }, () => {
  test('between answer and save ends at most one login, without a loop', async () => {
    const clock = new TestClock();
    service = await startEmulator({ clock: clock.now });
    const shared = { tokenStore: memoryTokenStore(), grantId: byUser };
    const world = await startWorld({ running: service, strategy: { clock: clock.now, ...shared } });
    worlds.push(world);
    const [ada, ben] = [new Browser(), new Browser()];
    await world.logIn(ada, '1');
    await world.logIn(ben, '2');
    clock.advance(2 * HOURS);
    // The rotation took effect at the service, and its answer was never saved by anyone.
    const record = await shared.tokenStore.get(storeId(service.options, '1'));
    await world.strategy.client('1').accessToken();
    if (record) await shared.tokenStore.set(storeId(service.options, '1'), record);
    const next = await startWorld({ running: service, strategy: { clock: clock.now, ...shared } });
    worlds.push(next);
    service.requests.length = 0;
    for (let index = 0; index < 5; index++) {
      await expect(next.strategy.client('1').accessToken()).rejects.toMatchObject({ status: 401 });
    }
    expect(next.tokenRequests()).toHaveLength(1);
    expect((await ben.visit(`${world.url}/projects`)).status).toBe(200);
    await world.logIn(ada, '1');
    expect((await ada.visit(`${world.url}/projects`)).status).toBe(200);
  });
});
