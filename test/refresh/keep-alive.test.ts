import { describe, expect, test, vi } from 'vitest';
import { memoryTokenStore, type StoredGrant } from '../../src/index.js';
import { another } from '../support/another.js';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { clock, loggedIn, open, refreshTokens, world } from '../support/one-world.js';
import { orSample } from '../support/sample.js';
import { stopTime } from '../support/stop-time.js';
import { storeId } from '../support/store-id.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import type { WorldOptions } from '../support/world.js';

const DAYS = 86_400;
const NOTHING = { seen: 0, refreshed: 0, ended: 0, failed: 0 };
const byUser = { grantId: (_req: unknown, user: { id: string }) => user.id };

/** Options of a world with so many users, and no logins yet. */
const withUsers = (count: number, strategy: WorldOptions['strategy'] = {}): WorldOptions => ({
  service: {
    users: Array.from({ length: count }, (_, index) => ({ id: `${index + 1}`, name: 'User', projects: [] })),
    refreshTokenReuse: 'revoke',
  },
  strategy: { ...byUser, tokenStore: memoryTokenStore(), ...strategy },
});

/** The record of a grant without a refresh token, which lives for 90 days. */
function accessTokenOnly(id: string, now: number): StoredGrant {
  const lifetimeMs = 90 * DAYS * 1000;
  const content = { id, lineage: 'l', generation: 0, accessToken: 'a', expiresAt: now + lifetimeMs, lifetimeMs };
  return { version: 1, expiresAt: now, sealed: Buffer.from(JSON.stringify(content)).toString('base64url') };
}

test('keepAlive refreshes the grants whose tokens are older, and no others', async () => {
  const tokenStore = memoryTokenStore();
  await loggedIn(withUsers(3, { tokenStore }));
  const log = listen('refresh');
  await world.logIn(new Browser(), '2');
  const id = storeId(world.service.options, 'import');
  await tokenStore.set(id, accessTokenOnly(id, clock.now()));
  clock.advance(30 * DAYS - 1);
  await world.logIn(new Browser(), '3');
  expect(await world.strategy.keepAlive({ olderThan: 30 * DAYS })).toEqual({ ...NOTHING, seen: 4 });
  clock.advance(1);
  const kept = await world.strategy.keepAlive({ olderThan: 30 * DAYS, rate: 1000 });
  expect(kept).toEqual({ ...NOTHING, seen: 4, refreshed: 2 });
  expect(new Set(refreshTokens().filter((token) => token !== undefined)).size).toBe(2);
  expect(log.values('refresh', 'trigger')).toEqual(['keep-alive', 'keep-alive']);
  expect(await world.strategy.grant('1')).toMatchObject({ refreshedAt: clock.now(), ended: false });
  expect(await world.strategy.keepAlive({ olderThan: 30 * DAYS })).toEqual({ ...NOTHING, seen: 4 });
});

test('keepAlive of several processes at once refreshes no grant twice', async () => {
  const count = orSample(40, 10);
  const tokenStore = memoryTokenStore();
  await loggedIn(withUsers(count, { tokenStore }));
  for (let user = 2; user <= count; user += 1) await world.logIn(new Browser(), `${user}`);
  const others = await Promise.all([1, 2, 3].map(() => another({ strategy: { ...byUser, tokenStore } })));
  clock.advance(DAYS);
  world.service.requests.length = 0;
  const strategies = [world, ...others].map(({ strategy }) => strategy);
  const results = await Promise.all(strategies.map((strategy) => strategy.keepAlive({ olderThan: DAYS, rate: 1000 })));
  expect(results.map(({ seen }) => seen)).toEqual([count, count, count, count]);
  expect(results.reduce((sum, { refreshed }) => sum + refreshed, 0)).toBe(count);
  expect(world.tokenRequests().length).toBe(count);
});

describe('keepAlive', () => {
  /** Runs it in time that the test moves. Returns its result, and when it began each refresh, in milliseconds. */
  async function paced(tokenStore: TroubledStore, options: object) {
    stopTime();
    const begun: number[] = [];
    tokenStore.before = (method) => void (method === 'lock' && begun.push(performance.now()));
    let result: object | undefined;
    void world.strategy.keepAlive({ olderThan: 0, ...options }).then((kept) => {
      result = kept;
    });
    while (result === undefined) {
      await vi.advanceTimersByTimeAsync(10);
      clock.advance(0.01);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { result, gapsMs: begun.slice(1).map((at, index) => at - (begun[index] ?? 0)) };
  }

  test.for([
    [{}, 100],
    [{ rate: 4 }, 250],
  ] as const)('begins at most `rate` refreshes a second, evenly spaced: %j', async ([options, gapMs]) => {
    const tokenStore = new TroubledStore();
    await loggedIn(withUsers(4, { tokenStore }));
    for (const user of ['2', '3', '4']) await world.logIn(new Browser(), user);
    const { result, gapsMs } = await paced(tokenStore, options);
    expect(result).toEqual({ ...NOTHING, seen: 4, refreshed: 4 });
    expect(gapsMs).toEqual([gapMs, gapMs, gapMs]);
  });

  test('waits while the token endpoint is in a pause, in place of failing', async () => {
    const tokenStore = new TroubledStore();
    await loggedIn(withUsers(3, { tokenStore }));
    for (const user of ['2', '3']) await world.logIn(new Browser(), user);
    world.service.fail('token', { status: 429, headers: { 'retry-after': '20' } });
    const { result, gapsMs } = await paced(tokenStore, { rate: 1 });
    expect(result).toEqual({ ...NOTHING, seen: 3, refreshed: 2, failed: 1 });
    expect(gapsMs[0]).toBeGreaterThanOrEqual(19_000);
    expect(gapsMs[1]).toBe(1_000);
  });
});

test('keepAlive counts the grants that the service has ended, and keeps those whose refresh fails', async () => {
  await loggedIn(withUsers(3));
  await world.logIn(new Browser(), '2');
  await world.logIn(new Browser(), '3');
  clock.advance(DAYS);
  world.service.revoke('2');
  world.service.fail('token', { status: 400, body: { error: 'invalid_request' } });
  const options = { olderThan: DAYS, rate: 1000 };
  expect(await world.strategy.keepAlive(options)).toEqual({ seen: 3, refreshed: 1, ended: 1, failed: 1 });
  expect(await world.strategy.grant('2')).toMatchObject({ ended: true });
  clock.advance(1);
  expect(await world.strategy.keepAlive(options)).toEqual({ seen: 2, refreshed: 1, ended: 0, failed: 0 });
});

describe('keepAlive ends', () => {
  test('with the reason of its signal; what runs is refreshed and saved', async () => {
    await loggedIn(withUsers(2));
    await world.logIn(new Browser(), '2');
    clock.advance(DAYS);
    world.service.requests.length = 0;
    const aborter = new AbortController();
    const keeping = world.strategy.keepAlive({ olderThan: DAYS, rate: 0.01, signal: aborter.signal });
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    const reason = new Error('the night is over');
    aborter.abort(reason);
    await expect(keeping).rejects.toBe(reason);
    await until(async () => expect(await world.strategy.grant('1')).toMatchObject({ refreshedAt: clock.now() }));
    expect(world.tokenRequests()).toHaveLength(1);
    await expect(world.strategy.keepAlive({ olderThan: DAYS, signal: aborter.signal })).rejects.toBe(reason);
  });

  test('when the strategy is closed', async () => {
    await loggedIn(withUsers(2));
    await world.logIn(new Browser(), '2');
    clock.advance(DAYS);
    world.service.requests.length = 0;
    const keeping = world.strategy.keepAlive({ olderThan: DAYS, rate: 0.01 });
    const failure = keeping.catch((error: unknown) => error);
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    await world.strategy.close();
    expect(await failure).toMatchObject({ name: 'ServiceUnavailableError', strategy: 'oauth-app' });
    expect(world.tokenRequests()).toHaveLength(1);
  });
});

test.for([
  [{}, /^olderThan: expected a number of seconds from 0 to/],
  [{ olderThan: -1 }, /^olderThan: expected a number of seconds from 0 to/],
  [{ olderThan: 1, rate: 0 }, /^rate: expected a number of refreshes a second from 0\.01 to 1000, got 0/],
  [{ olderThan: 1, signal: {} }, /^signal: expected an AbortSignal/],
  [{ olderThen: 1 }, /^olderThen: is not an option of keepAlive/],
] as const)('keepAlive refuses %j', async ([options, message]) => {
  const { strategy } = await open({ strategy: { tokenStore: memoryTokenStore() } });
  const refused = strategy.keepAlive(options as { olderThan: number });
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toMatchObject({ name: 'ConfigurationError', code: 'ERR_CONFIGURATION' });
});
