import { Strategy } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { afterEach, describe, expect, vi } from 'vitest';
import { HeldLock, LEASE_RESERVE_MS } from '../../src/stores/store-access.js';
import { gate } from '../support/gate.js';
import { connectForSuite, hasRedis, type RedisClient } from '../support/redis-server.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { LIFETIME_S, pair, test, tokens } from './fixture.js';

afterEach(() => void vi.restoreAllMocks());

describe.skipIf(!hasRedis())('over Redis, a process', threats(47, 78), () => {
  let client: RedisClient;
  let prefixes = 0;
  connectForSuite((connected) => {
    client = connected;
  });

  /** A store, with what happens once Redis has answered the request for a lock, its check and its release. */
  function open(
    prefix: string,
    answered: (what: 'taken' | 'refused' | 'released' | 'other', key: string) => unknown,
    lease = 30,
  ) {
    const sendCommand = async (args: readonly string[]): Promise<unknown> => {
      const answer: unknown = await client.sendCommand(args);
      const isOfLock = args[0] === 'EVAL' && args[3]?.includes('lock ');
      const isTake = isOfLock && args[1]?.includes("'set'");
      const isRelease = isOfLock && args[1]?.includes("'del'") && answer === 1;
      await answered(isTake ? (answer === 1 ? 'taken' : 'refused') : isRelease ? 'released' : 'other', `${args[3]}`);
      return answer;
    };
    return redisTokenStore({ isOpen: true, sendCommand } as never, { prefix, lease });
  }

  test.for([
    ['was stopped', [performance, Date]],
    ['and its monotonic clock were suspended', [Date]],
  ] as const)('that %s while its lock was answered takes the lock again', async ([, clocks], { grants }) => {
    const prefix = `${prefixes++}:`;
    let hasStopped = false;
    const store = open(prefix, async (what, key) => {
      if (what !== 'taken' || hasStopped) return;
      hasStopped = true;
      for (const clock of clocks) {
        const now = clock.now.bind(clock);
        vi.spyOn(clock, 'now').mockImplementation(() => now() + 29_500);
      }
      await client.pExpire(key, 1);
      await until(async () => expect(await client.exists(key)).toBe(0));
    });
    const asked = gate();
    const manager = grants.another({ store });
    const rival = grants.another({ store: open(prefix, (what) => what === 'refused' && asked.open()) });
    await manager.put('id', tokens('old'));
    grants.clock.advance(LIFETIME_S);
    let other: Promise<string | number> | undefined;
    grants.service.next(async (socket, request) => {
      other = grants.use(rival);
      await Promise.race([asked.opened, grants.service.received(2)]);
      pair('new')(socket, request);
    });
    expect(await grants.use(manager)).toBe('access-new');
    expect(await other).toBe('access-new');
    expect(grants.sent()).toEqual(['refresh-old']);
    expect(grants.events[0]).toMatchObject({ outcome: 'refreshed', lostLease: true });
  });

  test('whose lease was lost while it read the grant takes the lock again', async ({ grants }) => {
    const prefix = `${prefixes++}:`;
    let taken = '';
    const store = open(prefix, async (what, key) => {
      if (what === 'taken') taken ||= key;
    });
    const manager = grants.another({ store });
    await manager.put('id', tokens('old'));
    grants.clock.advance(LIFETIME_S);
    const get = store.get.bind(store);
    let hasLost = false;
    store.get = async (id) => {
      if (taken && !hasLost) {
        hasLost = true;
        await client.del(taken);
      }
      return await get(id);
    };
    expect(await grants.use(manager)).toBe('access-1');
    expect(grants.events).toMatchObject([{ outcome: 'refreshed', lostLease: true }]);
  });

  test('warns of a lease that a token request can outlive, when the strategy is created', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
    const strategyOf = (lease: number) =>
      new Strategy({
        ...{ authUrl: 'https://auth.example.com', baseUrl: 'https://api.example.com', callbackURL: '/callback' },
        ...{ clientID: 'id', clientSecret: 'secret', scope: 'project', timeout: 10_000 },
        tokenStore: redisTokenStore(client, { lease }),
      });
    await strategyOf(15).close();
    expect(warn).not.toHaveBeenCalled();
    await strategyOf(14).close();
    expect(warn).toHaveBeenCalledWith(
      expect.stringMatching(
        /locks grants for 14 s, too short for its timeout of 10000 ms: .* lease of the store to 15 or more/,
      ),
      expect.objectContaining({ code: 'ERR_SHORT_LEASE' }),
    );
  });

  test('that cannot save its pair releases its lock before the lease ends, however short that is', async ({
    grants,
  }) => {
    const prefix = `${prefixes++}:`;
    const order: string[] = [];
    // Answers of one connection come in the order of the calls.
    const store = open(prefix, (what) => what === 'released' && order.push('released by the holder'), 2);
    store.update = () => Promise.reject(new Error('The store is down'));
    const manager = grants.another({ store });
    await manager.put('id', tokens('old'));
    grants.clock.advance(LIFETIME_S);
    expect(await grants.use(manager)).toBe('access-1');
    const other = open(prefix, (what) => what === 'taken' && order.push('taken by another process'), 2);
    await other.lock('oauth-app+id', async () => undefined);
    expect(order).toEqual(['released by the holder', 'taken by another process']);
    await manager.remove('id');
  });
});

describe('a lock', () => {
  const held = (leaseMs: number, ageMs = 0, wall = () => 0) => {
    vi.spyOn(performance, 'now').mockReturnValue(0);
    const isHeld = async () => true;
    return new HeldLock({ leaseMs, ageMs, isHeld }, wall, async () => {});
  };

  test.for([
    [30_000, 10_000],
    [30_000, 25_000],
    [6_000, 1_000],
    [600_000, 60_000],
  ] as const)('of %i ms with requests of %i ms outlasts a request, its save and all later ones', ([lease, request]) => {
    expect(lease).toBeGreaterThanOrEqual(request + LEASE_RESERVE_MS);
    const last = Array.from({ length: 601 }, (_, step) => (step * lease) / 600).findLast(
      (ageMs) => held(lease, ageMs).limitTo(request).maySend,
    );
    expect(last).toBeDefined();
    const answered = (last ?? 0) + request;
    // A save takes two seconds at the most.
    expect(answered + held(lease, answered).holdMs() + 2_000).toBeLessThan(lease);
  });

  test('of the default length is held for twelve seconds or more where its first request has met every delay', () => {
    expect(held(30_000, 5_000).limitTo(10_000, 5_000).maySend).toBe(true);
    expect(held(30_000, 5_001).limitTo(10_000, 5_000).maySend).toBe(false);
    expect(held(30_000, 15_000).holdMs()).toBe(12_000);
    expect(held(30_000).holdMs()).toBe(15_000);
  });

  test('is held for a pair that is not saved whatever the wall clock is set to', () => {
    let wallMs = 0;
    const lock = held(30_000, 0, () => wallMs);
    wallMs = 3 * 3_600_000;
    expect(lock.limitTo(10_000).maySend).toBe(false);
    expect(lock.holdMs()).toBe(15_000);
  });

  test('is of no use once it is released, which is when all that it is held for has settled', async () => {
    const lock = held(30_000).limitTo(10_000);
    const hold = gate();
    lock.holdUntil(hold.opened);
    await lock.release();
    expect(lock.maySend).toBe(true);
    hold.open();
    await until(() => expect(lock.maySend).toBe(false));
    expect(lock.limitTo(10_000).maySend).toBe(false);
  });

  test('whose age no clock shows, since the wall clock was set back, is of no use until the last try', () => {
    let wallMs = 0;
    const lock = held(30_000, 0, () => wallMs);
    // NTP has stepped it.
    wallMs = -500;
    expect(lock.limitTo(10_000, 5_000).maySend).toBe(true);
    wallMs = -3 * 3_600_000;
    expect(lock.limitTo(10_000, 5_000).maySend).toBe(false);
    expect(lock.limitTo(10_000, 5_000, false).maySend).toBe(true);
  });
});

test('a lock that has grown too old by the monotonic clock alone is taken again before the token is sent', async ({
  expired: grants,
}) => {
  const { store } = grants;
  const now = performance.now.bind(performance);
  let passed = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
  store.before = (method) => {
    if (method === 'get' && store.calls.includes('lock')) passed ||= 1_001;
  };
  expect(await grants.use()).toBe('access-1');
  expect(store.calls.filter((call) => call === 'lock')).toHaveLength(2);
  expect(grants.events).toMatchObject([{ outcome: 'refreshed', lostLease: true }]);
});

test.for([
  ['once', 1, 2],
  ['each time', 3, 3],
] as const)(
  'a lock is taken again, and no more than twice, when the wall clock is set back %s meanwhile',
  async ([, steps, locks], { expired: grants }) => {
    const { clock, store } = grants;
    let [taken, set] = [0, 0];
    store.before = (method) => {
      if (method === 'lock') taken += 1;
      if (method !== 'get' || set >= Math.min(taken, steps)) return;
      set += 1;
      clock.advance(-60);
    };
    expect(await grants.use()).toBe('access-1');
    expect([set, taken]).toEqual([steps, locks]);
    expect(grants.sent()).toEqual(['refresh-old']);
    expect(grants.events).toMatchObject([{ outcome: 'refreshed', lostLease: true }]);
  },
);
