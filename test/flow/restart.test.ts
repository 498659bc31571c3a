import session from 'express-session';
import { describe, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import { Browser } from '../support/browser.js';
import { withoutPauses } from '../support/fast-forward.js';
import { browser, clock, loggedIn, logIn, projects, world } from '../support/one-world.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { byUser } from '../support/world.js';

const HOURS = 3600;

describe.each([
  ['beside the sessions', () => undefined],
  ['in a store of their own', memoryTokenStore],
])('a process that is started again, with the grants %s,', (_where, tokenStore) => {
  test('has all users logged in still, with valid tokens and with expired ones', async () => {
    const options = { session: { store: new session.MemoryStore() }, strategy: { tokenStore: tokenStore() } };
    await loggedIn(options);
    await world.strategy.close();
    for (const age of [0, 2 * HOURS, 48 * HOURS]) {
      clock.advance(age);
      const next = await another(options);
      for (const [name, value] of browser.cookies(world.url)) browser.cookies(next.url).set(name, value);
      expect((await browser.visit(`${next.url}/projects`)).status).toBe(200);
      await next.strategy.close();
    }
    expect(world.tokenRequests()).toHaveLength(2);
  });
});

describe('a process that dies', threats(46), () => {
  test('between answer and save ends at most one login, without a loop', async () => {
    const shared = { tokenStore: memoryTokenStore(), grantId: byUser };
    await loggedIn({ strategy: shared });
    const ben = new Browser();
    await world.logIn(ben, '2');
    clock.advance(2 * HOURS);
    // The rotation took effect at the service, and its answer was never saved by anyone.
    const id = storeId(world.service.options, '1');
    const record = await shared.tokenStore.get(id);
    await world.strategy.client('1').accessToken();
    if (record) await shared.tokenStore.set(id, record);
    const next = await another({ strategy: shared });
    world.service.requests.length = 0;
    const ask = () => expect(next.strategy.client('1').accessToken()).rejects.toMatchObject({ status: 401 });
    await withoutPauses(ask, world.service.authUrl);
    for (let index = 0; index < 4; index++) await ask();
    expect(next.tokenRequests()).toHaveLength(1);
    expect((await ben.visit(`${world.url}/projects`)).status).toBe(200);
    await logIn('1');
    expect((await projects()).status).toBe(200);
  });
});
