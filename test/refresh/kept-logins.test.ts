import { setImmediate as turn } from 'node:timers/promises';
import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { afterAll, test as base, beforeAll, describe, expect, vi } from 'vitest';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { fastForward } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { type StoreMethod, TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { withoutLock } from '../support/without-lock.js';
import { startWorld, type World } from '../support/world.js';

const HOURS = 3600;

/** One process of the application, with its own way to the shared store. */
interface Process {
  readonly world: World;
  readonly store: TroubledStore;
  /** The access token in use, or the status of the error. */
  token(user?: string): Promise<string | number>;
}

/** Several processes that share a store, and a service that a login was made with. */
interface Cluster {
  readonly service: Emulator;
  readonly clock: TestClock;
  /** Where the grant of the user 1 is. */
  readonly id: string;
  readonly a: Process;
  readonly b: Process;
  start(strategy?: object): Promise<Process>;
  logIn(user?: string): Promise<void>;
  tokenRequests(): number;
}

/** Returns a store over what processes share; each process has its own. */
type Connect = () => Required<TokenStore>;

type StartCluster = (connect: Connect, options?: EmulatorOptions, strategy?: object) => Promise<Cluster>;

const test = base.extend<{ readonly cluster: StartCluster }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  cluster: async ({}, use) => {
    const ends: (() => Promise<unknown>)[] = [];
    await use(async (connect, options = {}, strategy = {}) => {
      const clock = new TestClock();
      const service = await startEmulator({ clock: clock.now, refreshTokenReuse: 'revoke', ...options });
      ends.unshift(() => service.close());
      const start = async (more: object = {}): Promise<Process> => {
        const store = Object.assign(new TroubledStore(), { inner: connect() });
        const grantId = (_req: unknown, user: { id: string }) => user.id;
        const world = await startWorld({
          running: service,
          strategy: { tokenStore: store, grantId, clock: clock.now, ...strategy, ...more },
        });
        ends.unshift(() => world.close());
        const token = (user = '1') =>
          world.strategy
            .client(user)
            .accessToken()
            .catch((error: { status: number }) => error.status);
        return { world, store, token };
      };
      const [a, b] = [await start(), await start()];
      const logIn = async (user?: string) => void (await a.world.logIn(new Browser(), user));
      await logIn('1');
      service.requests.length = 0;
      for (const { store } of [a, b]) store.calls.length = 0;
      const tokenRequests = () => a.world.tokenRequests().length;
      return { service, clock, id: storeId(service.options, '1'), a, b, start, logIn, tokenRequests };
    });
    for (const end of ends) await end();
  },
});

/** Counts the calls of a store that are under way: locks that are asked for or held, and others. */
function counted(store: TroubledStore): { readonly lock: number; readonly other: number } {
  const [{ inner }, underWay] = [store, { lock: 0, other: 0 }];
  const get = (_: unknown, method: Exclude<StoreMethod, 'list'>) => {
    const what = method === 'lock' ? 'lock' : 'other';
    return async (...args: never[]) => {
      underWay[what] += 1;
      try {
        return await Reflect.apply(inner[method], inner, args);
      } finally {
        underWay[what] -= 1;
      }
    };
  };
  Object.assign(store, { inner: new Proxy(inner, { get: get as never }) });
  return underWay;
}

/** Makes room for the grants of one test. A lock ends by itself after the lease, in seconds. */
type OpenStore = (options?: { readonly lease: number }) => Connect;

/** A server of stores that processes share. */
interface StoreServer {
  readonly open: OpenStore;
  stop(): Promise<void>;
}

/** Stores that processes share, and how each is started. A lease in memory ends at once. */
const stores: readonly (readonly [string, boolean, () => Promise<StoreServer>])[] = [
  [
    'memory',
    true,
    async () => ({
      open: (options) => {
        const store = Object.assign(memoryTokenStore(), options && { lock: (_id: string, work: Work) => work() });
        return () => store;
      },
      stop: async () => {},
    }),
  ],
  [
    'Redis',
    hasRedis(),
    async () => {
      const server = await startRedis();
      const client = await createClient({ url: server.url }).connect();
      let count = 0;
      return {
        open: (options) => {
          const prefix = `${count++}:`;
          return () => redisTokenStore(client, { prefix, ...options }) as Required<TokenStore>;
        },
        stop: async () => {
          client.destroy();
          await server.stop();
        },
      };
    },
  ],
  [
    'PostgreSQL',
    hasPostgres(),
    async () => {
      const server = await startPostgres();
      const pool = new Pool({ connectionString: server.connectionString });
      let count = 0;
      return {
        open: (options) => {
          const table = `grants${count++}`;
          return () => postgresTokenStore(pool, { table, ...options }) as Required<TokenStore>;
        },
        stop: async () => {
          await pool.end();
          await server.stop();
        },
      };
    },
  ],
];

type Work = () => Promise<never>;

/** Starts the server of a store for the tests of a suite. Returns their test function, skipped where it is not installed. */
function testOver(isInstalled: boolean, start: (typeof stores)[number][2], options: EmulatorOptions = {}) {
  let server: StoreServer | undefined;
  beforeAll(async () => {
    if (isInstalled) server = await start();
  });
  afterAll(() => server?.stop());
  const open: OpenStore = (options) => {
    if (server === undefined) throw new Error('The server has not started');
    return server.open(options);
  };
  const testHere = test.extend<{
    readonly open: OpenStore;
    readonly connect: Connect;
    /** Two processes and a grant that has expired. */
    readonly expired: Cluster;
  }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
    open: async ({}, use) => use(open),
    connect: async ({ open }, use) => use(open()),
    expired: async ({ cluster, connect }, use) => {
      const started = await cluster(connect, options);
      started.clock.advance(2 * HOURS);
      await use(started);
    },
  });
  return testHere.skipIf(!isInstalled);
}

describe.each(stores)('a service that revokes on reuse, and grants in %s', threats(64), (_name, isInstalled, start) => {
  const check = testOver(isInstalled, start);

  check('keep the login through nine refreshes whose saves fail', async ({ cluster, connect }) => {
    const { a, b, clock, id } = await cluster(connect);
    const events = listen('refresh');
    const underWay = counted(a.store);
    let isRecovered = false;
    const refreshes = async () => {
      a.store.fail('update');
      for (let times = 0; times < 9; times++) {
        clock.advance(2 * HOURS);
        expect(await a.token()).toBeTypeOf('string');
        // Until it has tried the save for the last time.
        await vi.advanceTimersByTimeAsync(15_000);
        while (underWay.lock > 0) await turn();
      }
      a.store.recover();
      isRecovered = true;
      while (events.values('refresh', 'outcome').at(-1) === 'unsaved') await turn();
      expect(events.values('refresh', 'outcome').at(-1)).toBe('saved');
    };
    // No time passes for a real store that saves: a busy one would exceed its limit.
    await fastForward(refreshes, () => isRecovered && underWay.other === 0);
    await connect().lock(id, async () => undefined);
    const used = await a.token();
    await until(async () => expect(await b.token()).toBe(used));
  });

  for (const hasUpdate of [true, false])
    check(
      `wait for a token endpoint that hangs once, in the first of several processes; with update: ${hasUpdate}`,
      async ({ cluster, connect }) => {
        const { start, clock, service, tokenRequests } = await cluster(connect);
        const stores = [0, 1].map(() => Object.assign(new TroubledStore(), { inner: connect() }));
        const startOver = (store: TroubledStore) =>
          start({ tokenStore: hasUpdate ? store : { ...withoutLock(store), lock: store.lock.bind(store) } });
        const processes = await Promise.all(stores.map(startOver));
        const underWay = stores.map(counted);
        clock.advance(2 * HOURS);
        service.fail('token', { hang: true, times: Number.POSITIVE_INFINITY });
        const used = fastForward(
          () => Promise.all(processes.map(({ token }) => token())),
          // No time passes for a real store that reads or writes: a busy one would exceed its limit.
          () => tokenRequests() > 0 && underWay.every(({ other }) => other === 0),
        );
        expect(await used).toEqual([503, 503]);
        expect(tokenRequests()).toBe(1);
      },
    );

  check(
    'send no token after close(), which ends the wait for the lock',
    async ({ connect, expired: { a, id, tokenRequests } }) => {
      const { opened, open: release } = gate();
      const taken = gate();
      const held = connect().lock(id, () => {
        taken.open();
        return opened;
      });
      await taken.opened;
      const waiting = a.token();
      await until(() => expect(a.store.calls).toContain('lock'));
      await a.world.strategy.close();
      expect(await waiting).toBe(503);
      release();
      await held;
      expect(tokenRequests()).toBe(0);
    },
  );

  check('send no token after close() of a strategy that was not used before', async ({ cluster, connect }) => {
    const { start, clock, tokenRequests } = await cluster(connect);
    const late = await start();
    await late.world.strategy.close();
    clock.advance(2 * HOURS);
    expect(() => late.token()).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }));
    expect(tokenRequests()).toBe(0);
  });

  check(
    'keep the login when one save fails: other processes wait until the pair is saved',
    async ({ cluster, connect }) => {
      const { a, b, clock, tokenRequests } = await cluster(connect);
      clock.advance(2 * HOURS);
      a.store.before = (method) => {
        if (method !== 'update') return;
        a.store.recover();
        throw new Error('This save fails');
      };
      const used = await a.token();
      expect(used).toBeTypeOf('string');
      expect(await b.token()).toBe(used);
      clock.advance(2 * HOURS);
      expect(await b.token()).toBeTypeOf('string');
      expect(tokenRequests()).toBe(2);
    },
  );

  check(
    'keep the login when the holder of the lock was suspended before it sent its token',
    async ({ cluster, open }) => {
      const { a, b, clock, tokenRequests } = await cluster(open({ lease: 1 }));
      clock.advance(2 * HOURS);
      const get = a.store.get.bind(a.store);
      let other: string | number = 0;
      a.store.get = async (id) => {
        const found = await get(id);
        if (!a.store.calls.includes('lock')) return found;
        a.store.get = get;
        // Suspended until the lease has ended, and the other process has had the lock.
        clock.advance(60);
        other = await b.token();
        return found;
      };
      expect(await a.token()).toBe(other);
      clock.advance(2 * HOURS);
      expect(await a.token()).toBeTypeOf('string');
      expect(tokenRequests()).toBe(2);
    },
  );

  check(
    'keep the login when the answer to a save was lost, and another process has refreshed since',
    async ({ expired: { a, b, clock, tokenRequests } }) => {
      let hasAnswers = false;
      const { lock } = a.store;
      const held = { ageMs: 0, isHeld: async () => true };
      a.store.lock = (id, work) => lock(id, (lease) => work({ ...held, ...lease, leaseMs: 10_000 }));
      a.store.update = async (...args) => {
        const saved = await a.store.inner.update(...args);
        if (hasAnswers) return saved;
        throw new Error('The answer was lost');
      };
      expect(await a.token()).toBeTypeOf('string');
      clock.advance(2 * HOURS);
      // The lease of the first process has ended.
      b.store.lock = (_id, work) => work();
      const used = await b.token();
      expect(await a.token()).toBe(used);
      expect(tokenRequests()).toBe(2);
      hasAnswers = true;
      await a.world.strategy.close();
    },
  );

  check(
    'keep the login when one process is cut off with the new pair, and a replica of the service refuses another one',
    async ({ expired: { a, b, clock, service } }) => {
      a.store.fail('update');
      const used = await a.token();
      // The lease of the process that is cut off has ended.
      b.store.lock = (_id, work) => work();
      const heal = service.fail('token', { body: { error: 'invalid_grant' }, times: Number.POSITIVE_INFINITY });
      expect(await b.token()).toBe(401);
      heal();
      a.store.recover();
      await until(async () => expect(await b.token()).toBe(used));
      clock.advance(2 * HOURS);
      expect(await b.token()).toBeTypeOf('string');
    },
  );

  check(
    'keep the login when a failover of the store has lost the last save',
    async ({ connect, expired: { a, b, clock, id, tokenRequests } }) => {
      const before = await connect().get(id);
      const used = await a.token();
      if (before) await connect().set(id, before);
      clock.advance(31);
      expect(await a.token()).toBe(used);
      expect(await b.token()).toBe(used);
      expect(tokenRequests()).toBe(1);
    },
  );

  check.for(['update', 'delete'] as const)(
    'keep a login that replaces a grant while that is being given up, by its %s',
    async (method, { expired: { b, clock, service, logIn } }) => {
      service.revoke('1');
      let hasLoggedIn = false;
      b.store.before = async (called) => {
        if (called !== method) return;
        b.store.recover();
        hasLoggedIn = true;
        await logIn('1');
      };
      await b.token();
      if (!hasLoggedIn) await logIn('1');
      clock.advance(31);
      expect(await b.token()).toBeTypeOf('string');
    },
  );

  check('keep a login when the deletion of the former grant arrives late', async ({ cluster, connect }) => {
    const { a, b, clock, logIn, service } = await cluster(connect);
    const browser = new Browser();
    await a.world.logIn(browser, '1');
    let arrives: () => Promise<void> = async () => {};
    a.store.delete = async (...args) => {
      arrives = () => connect().delete(...args);
      throw new Error('The answer was lost');
    };
    await browser.visit(`${a.world.url}/logout`, { method: 'POST' });
    await logIn('1');
    await arrives();
    clock.advance(31);
    expect(await b.token()).toBeTypeOf('string');
    service.requests.length = 0;
  });
});

describe.each(stores)('a service that refuses used refresh tokens, and grants in %s', (_name, isInstalled, start) => {
  const check = testOver(isInstalled, start, { refreshTokenReuse: 'refuse' });

  check(
    'costs no login when one process is cut off with the new pair, and another is refused',
    async ({ expired: { a, b } }) => {
      a.store.fail('update');
      const used = await a.token();
      // The lease of the process that is cut off has ended.
      b.store.lock = (_id, work) => work();
      expect(await b.token()).toBe(401);
      a.store.recover();
      await until(async () => expect(await b.token()).toBe(used));
    },
  );

  check(
    'costs no login when a failover has lost the new pair, and another process is refused',
    async ({ connect, expired: { a, b, clock, id } }) => {
      const before = await connect().get(id);
      const used = await a.token();
      if (before) await connect().set(id, before);
      expect(await b.token()).toBe(401);
      clock.advance(31);
      expect(await a.token()).toBe(used);
      expect(await b.token()).toBe(used);
    },
  );

  check(
    'does not bring back a login that has ended, though a process holds the pair after the refused one',
    async ({ cluster, connect }) => {
      const { a, b, clock } = await cluster(connect, { refreshTokenReuse: 'refuse' });
      const browser = new Browser();
      await b.world.logIn(browser, '1');
      clock.advance(2 * HOURS);
      a.store.fail('update');
      await a.token();
      b.store.lock = (_id, work) => work();
      await browser.visit(`${b.world.url}/logout`, { method: 'POST' });
      a.store.recover();
      await until(async () => expect(await a.token()).toBe(401));
      expect(await b.token()).toBe(401);
    },
  );
});

test('a store that ignores case gives no user the grant of another', threats(65), async ({ cluster }) => {
  const inner = memoryTokenStore();
  const folding: Required<TokenStore> = {
    ...inner,
    get: (id) => inner.get(id.toLowerCase()),
    set: (id, grant) => inner.set(id.toLowerCase(), grant),
    delete: (id, version) => inner.delete(id.toLowerCase(), version),
    update: (id, grant, version) => inner.update(id.toLowerCase(), grant, version),
    add: (id, grant) => inner.add(id.toLowerCase(), grant),
    lock: (id, work) => inner.lock(id.toLowerCase(), work),
  };
  const users = ['1', 'Ada', 'ada'].map((id) => ({ id, name: id, projects: [] }));
  const { a, b, logIn } = await cluster(() => folding, { users });
  await logIn('Ada');
  expect(await a.token('Ada')).toBeTypeOf('string');
  expect(await b.token('ada')).toBe(401);
  expect(await b.token('Ada')).toBeTypeOf('string');
});

describe.each(stores)('processes that share a store without a lock, in %s', (_name, isInstalled, start) => {
  const check = testOver(isInstalled, start);

  check(
    'keep the newer of two pairs that a service with a grace period has given for one refresh token',
    async ({ cluster, connect }) => {
      const plain = withoutLock(connect()) as Required<TokenStore>;
      const { clock, tokenRequests, start } = await cluster(connect, { refreshTokenReuse: 'grace' });
      const [first, second] = [
        await start({ tokenStore: withoutLock(plain) }),
        await start({ tokenStore: withoutLock(plain) }),
      ];
      clock.advance(2 * HOURS);
      const [{ opened, open }, saving] = [gate(), gate()];
      const set = plain.set;
      plain.set = async (id, grant) => {
        plain.set = set;
        saving.open();
        await opened;
        await set(id, grant);
      };
      const older = first.token();
      // Its pair is there: the next one is newer by a second.
      await saving.opened;
      clock.advance(1);
      const get = plain.get;
      plain.get = async (id) => {
        // The save of the newer one reads what the other process has saved.
        if (tokenRequests() === 2) {
          open();
          await older;
        }
        return await get(id);
      };
      const newer = await second.token();
      expect(newer).not.toBe(await older);
      plain.get = get;
      expect(await (await start({ tokenStore: withoutLock(plain) })).token()).toBe(newer);
    },
  );

  check('lead to a warning, once, when a second one has refreshed', async ({ cluster, connect }) => {
    const store = connect();
    const plain = () => ({ tokenStore: withoutLock(store) });
    const { clock, start } = await cluster(connect);
    const [first, second] = [await start(plain()), await start(plain())];
    await Promise.all([first.token(), second.token()]);
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    try {
      for (let times = 0; times < 3; times++) {
        clock.advance(2 * HOURS);
        await first.token();
        await second.token();
      }
      expect(warn.mock.calls.map(([message]) => message)).toEqual([expect.stringContaining('has no lock')]);
    } finally {
      warn.mockRestore();
    }
  });

  check('lead to events that tell of a used refresh token', async ({ cluster, connect }) => {
    const plain = withoutLock(connect());
    const { clock, start, tokenRequests } = await cluster(connect, { refreshTokenReuse: 'refuse' });
    const [first, second] = [
      await start({ tokenStore: withoutLock(plain) }),
      await start({ tokenStore: withoutLock(plain) }),
    ];
    clock.advance(2 * HOURS);
    const events = listen('refresh');
    const { set } = plain;
    plain.set = async (id, grant) => {
      // Both have sent the same refresh token.
      await until(() => expect(tokenRequests()).toBe(2));
      await set(id, grant);
    };
    const used = await Promise.all([first.token(), second.token()]);
    expect(new Set(used).size).toBe(1);
    expect(tokenRequests()).toBe(2);
    expect(new Set(events.values('refresh', 'outcome'))).toEqual(new Set(['refreshed', 'adopted']));
    expect(events.events.find(({ event }) => event.outcome === 'adopted')?.event).toMatchObject({ reused: true });
  });
});
