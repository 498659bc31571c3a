import { inspect } from 'node:util';
import connectPgSimple from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { sessionTokenStore, type TokenStore } from 'passport-oauth-app';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { SessionStoreLike } from '../../src/stores/session-token-store.js';
import { hasFaketime, hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { connectForSuite, hasRedis, type RedisClient } from '../support/redis-server.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text', future: { field: [1, 'two'] } };

afterEach(() => vi.useRealTimers());

/** A session store with the three methods and nothing to them. */
function fakeStore(methods: Partial<SessionStoreLike> = {}): SessionStoreLike {
  return {
    get: (_sid, callback) => callback(null),
    set: (_sid, _session, callback) => callback(),
    destroy: (_sid, callback) => callback(),
    ...methods,
  };
}

test('keeps a grant in a record that looks like a session, beside the sessions', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
  const set = vi.fn((_sid: string, _session: object, callback: () => void) => callback());
  await sessionTokenStore(fakeStore({ set }), { ttl: 60 }).set('a+b%2F', grant);
  const cookie = { originalMaxAge: 60_000, maxAge: 60_000, expires: new Date(1_060_000), httpOnly: true, path: '/' };
  expect(set).toHaveBeenCalledWith(
    expect.stringMatching(/^oauth-app-grant\.[a-z0-9]{20}$/),
    { cookie, id: 'a+b%2F', grant },
    expect.any(Function),
  );
});

test('keeps grants for 30 days unless told otherwise, counted anew at each set', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  const store = sessionTokenStore(new session.MemoryStore());
  const day = 24 * 60 * 60 * 1000;
  await store.set('id', grant);
  vi.setSystemTime(29 * day);
  await store.set('id', grant);
  vi.setSystemTime(58 * day);
  expect(await store.get('id')).toEqual(grant);
  vi.setSystemTime(60 * day);
  expect(await store.get('id')).toBeUndefined();
});

test('returns no grant for a session, for a damaged record, or for the record of another id', async () => {
  const damaged = [
    undefined,
    null,
    'text',
    {},
    { cookie: {} },
    { id: 'id', grant: {} },
    { id: 'id', grant: { version: 'one' } },
  ];
  for (const found of [...damaged, { grant }, { id: 'ID', grant }]) {
    const store = sessionTokenStore(fakeStore({ get: (_sid, callback) => callback(null, found) }));
    expect(await store.get('id')).toBeUndefined();
  }
});

test('takes a missing file for a missing grant, as express-session does', async () => {
  const missing = Object.assign(new Error('no such file'), { code: 'ENOENT' });
  const store = sessionTokenStore(
    fakeStore({ get: (_sid, callback) => callback(missing), destroy: (_sid, callback) => callback(missing) }),
  );
  expect(await store.get('id')).toBeUndefined();
  await expect(store.delete('id')).resolves.toBeUndefined();
});

test('rejects with a TokenStoreError that quotes no secret for each failure of the session store', async () => {
  const secret = 'eyJhbGciOiJkaXIifQ.secret-secret-secret';
  const failures: SessionStoreLike['set'][] = [
    (_sid, _session, callback) => callback(new Error(`cannot save ${secret}`)),
    (_sid, _session, callback) => callback(secret),
    () => {
      throw new Error(`cannot save ${secret}`);
    },
    () => Promise.reject(new Error(`cannot save ${secret}`)),
  ];
  for (const set of failures) {
    const fault = await sessionTokenStore(fakeStore({ set }))
      .set('id', grant)
      .catch((error: unknown) => error);
    expect(fault).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 });
    expect(inspect(fault, { depth: 10, showHidden: true })).not.toContain('secret-secret');
  }
});

test.for([
  ['get', 'read', (store: TokenStore) => store.get('id')],
  ['set', 'save', (store: TokenStore) => store.set('id', grant)],
  ['destroy', 'delete', (store: TokenStore) => store.delete('id')],
] as const)(
  'tells of %s what was not done: to %s, whatever the error and whenever it comes',
  async ([method, verb, use]) => {
    const faults = ['a text', '', 0, new Error('down'), Object.assign(new Error('denied'), { code: 'EACCES' })];
    for (const fault of faults) {
      const failing = (...args: unknown[]) => void setImmediate(args.at(-1) as (error: unknown) => void, fault);
      const used = use(sessionTokenStore(fakeStore({ [method]: failing })));
      const message = `The session store could not ${verb} a grant.`;
      await expect(used).rejects.toMatchObject({ message, cause: expect.any(Error) });
    }
  },
);

test('takes any of the ways in which session stores say that nothing is wrong', async () => {
  for (const nothing of [undefined, null, false]) {
    const get: SessionStoreLike['get'] = (_sid, callback) => void setImmediate(callback, nothing, { id: 'id', grant });
    expect(await sessionTokenStore(fakeStore({ get })).get('id')).toEqual(grant);
  }
});

test('counts the first answer alone of a store that calls back twice', async () => {
  const get: SessionStoreLike['get'] = (_sid, callback) => {
    callback(null, { id: 'id', grant });
    callback(new Error('again'));
  };
  expect(await sessionTokenStore(fakeStore({ get })).get('id')).toEqual(grant);
});

test('uses keys of 36 characters that are valid file names and differ by more than case, for any id', async () => {
  const keys: string[] = [];
  const set: SessionStoreLike['set'] = (sid, _session, callback) => callback(keys.push(sid) && undefined);
  const store = sessionTokenStore(fakeStore({ set }));
  const ids = ['../../etc/passwd', 'a'.repeat(1024), 'b'.repeat(1024), 'x=y', '\0', 'übung', 'Ada', 'ada'];
  for (const id of ids) await store.set(id, grant);
  expect(new Set(keys).size).toBe(ids.length);
  for (const key of keys) expect(key).toMatch(/^oauth-app-grant\.[a-z0-9]{20}$/);
});

test('never returns the grant of another user from a session store that shortens keys or ignores case', async () => {
  const memory = new session.MemoryStore();
  const one = 'one key for everything';
  const store = sessionTokenStore({
    get: (_sid, callback) => memory.get(one, callback),
    set: (_sid, entry, callback) => memory.set(one, entry as session.SessionData, callback),
    destroy: (_sid, callback) => memory.destroy(one, callback),
  });
  await store.set('Ada', grant);
  expect(await store.get('ada')).toBeUndefined();
  expect(await store.get('Ada')).toEqual(grant);
});

test('deletes a version of a grant only while the session store has that version', async () => {
  const store = sessionTokenStore(new session.MemoryStore());
  await store.set('id', grant);
  await store.delete('id', 2);
  expect(await store.get('id')).toEqual(grant);
  await store.delete('id', 1);
  expect(await store.get('id')).toBeUndefined();
});

const redis = { prefix: 'sess:', scanCount: 100, serializer: JSON };
const client = { isOpen: true, sendCommand: () => undefined };
test.for<[what: string, fields: object]>([
  [
    'connect-redis 6, whose client is in legacy mode',
    { ...redis, client: { ...client, options: { legacyMode: true } } },
  ],
  ['connect-redis over a client of another kind', { ...redis, client: { sendCommand: () => undefined } }],
  ['connect-redis over a client that sends no commands', { ...redis, client: { isOpen: true } }],
  ['connect-redis with an odd prefix', { ...redis, client, prefix: 7 }],
  [
    'a store that looks like connect-pg-simple',
    { pruneSessions: () => undefined, query: () => undefined, quotedTable: () => undefined },
  ],
  [
    'one whose table has no name',
    {
      ...{ pruneSessions: () => undefined, query: () => undefined },
      quotedTable: () => {
        throw new Error('no table');
      },
    },
  ],
])('has no lock, and no error, over %s', threats(119), async ([, fields]) => {
  const store = sessionTokenStore(Object.assign(new session.MemoryStore(), fields));
  await store.set('id', grant);
  expect([store.lock, await store.get('id')]).toEqual([undefined, grant]);
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const store = fakeStore();
  // @ts-expect-error: not a store
  expect(() => sessionTokenStore(undefined)).toThrow(/^store: expected an express-session store, got undefined/);
  // @ts-expect-error: not a whole store
  expect(() => sessionTokenStore({ get: store.get, set: store.set })).toThrow(/^store: .*without the method destroy/);
  // @ts-expect-error: misspelt
  expect(() => sessionTokenStore(store, { tll: 5 })).toThrow(/^tll: is not an option of sessionTokenStore/);
  for (const ttl of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => sessionTokenStore(store, { ttl })).toThrow(/^ttl: expected a number of seconds from 1/);
  }
  for (const prefix of ['', 'a b', 'a/b', 'a\\b', 'x'.repeat(65)]) {
    expect(() => sessionTokenStore(store, { prefix })).toThrow(/^prefix: expected/);
  }
});

function checkAll(createStore: () => SessionStoreLike | Promise<SessionStoreLike>): void {
  for (const { name, run } of tokenStoreChecks(async () => sessionTokenStore(await createStore()))) test(name, run);
}

/** Two stores over one storage, as two processes have them. */
async function locksAndCompares(one: TokenStore, other: TokenStore): Promise<void> {
  await one.set('shared', grant);
  const order: string[] = [];
  await one.lock?.('shared', async (lease) => {
    expect(await lease?.isHeld()).toBe(true);
    const waiting = other.lock?.('shared', async () => order.push('other'));
    expect(await other.update?.('shared', { ...grant, version: 2 }, 1)).toBe(true);
    expect(await one.update?.('shared', { ...grant, version: 3 }, 1)).toBe(false);
    order.push('one');
    void waiting?.then(() => order.push('end'));
  });
  await until(() => expect(order).toEqual(['one', 'other', 'end']));
}

describe('over the MemoryStore of express-session', () => checkAll(() => new session.MemoryStore()));

describe.skipIf(!hasRedis())('over connect-redis', () => {
  let client: RedisClient;
  connectForSuite((connected) => {
    client = connected;
  });

  checkAll(() => new RedisStore({ client }));

  test('locks and compares versions, across processes', async () => {
    const [one, other] = [sessionTokenStore(new RedisStore({ client })), sessionTokenStore(new RedisStore({ client }))];
    await locksAndCompares(one, other);
  });

  test('lets the application list its sessions beside the grants and locks, whose ids begin with the prefix', async () => {
    const sessions = new RedisStore({ client });
    await sessions.set('session', { cookie: { originalMaxAge: null } });
    const ids = await sessionTokenStore(sessions).lock?.('listed', async () => {
      await sessionTokenStore(sessions).set('listed', grant);
      return (await sessions.all()).map(({ id }: { id: string }) => id);
    });
    expect(ids?.filter((id: string) => !id.startsWith('oauth-app-grant.'))).toEqual(['session']);
    expect(ids).toContain('oauth-app-grant.listed');
  });

  test('leaves grants to a serializer of the application, and then has no lock', async () => {
    const serializer = {
      stringify: (value: object) => `=${JSON.stringify(value)}`,
      parse: (text: string) => JSON.parse(text.slice(1)),
    };
    const store = sessionTokenStore(new RedisStore({ client, serializer, prefix: 'own:' }));
    await store.set('id', grant);
    expect(store.lock).toBeUndefined();
    expect(await store.get('id')).toEqual(grant);
    expect(await client.get((await client.keys('own:*'))[0] ?? '')).toMatch(/^=/);
  });

  test('lets Redis end the grant after its time to live', async () => {
    await sessionTokenStore(new RedisStore({ client }), { ttl: 100 }).set('ttl', grant);
    expect(await client.ttl('sess:oauth-app-grant.ttl')).toBeOneOf([99, 100]);
  });
});

describe.skipIf(!hasPostgres())('over connect-pg-simple', () => {
  let postgres: PostgresServer;
  let pool: pg.Pool;
  let store: SessionStoreLike;

  beforeAll(async () => {
    postgres = await startPostgres();
    pool = new pg.Pool({ connectionString: postgres.connectionString });
    const PgStore = connectPgSimple(session);
    store = new PgStore({ pool, createTableIfMissing: true, pruneSessionInterval: false });
  });
  afterAll(async () => {
    await pool.end();
    await postgres.stop();
  });

  checkAll(() => store);

  test('locks and compares versions, across processes', async () => {
    const other = new (connectPgSimple(session))({ pool, pruneSessionInterval: false });
    await locksAndCompares(sessionTokenStore(store), sessionTokenStore(other));
  });

  test('works in a table of another name and schema, which it creates only where the application says so', async () => {
    await pool.query('CREATE SCHEMA web');
    const options = { pool, schemaName: 'web', tableName: "o'sessions", pruneSessionInterval: false } as const;
    const Store = connectPgSimple(session);
    await expect(sessionTokenStore(new Store(options)).get('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    const created = sessionTokenStore(new Store({ ...options, createTableIfMissing: true }), { prefix: "o'grant." });
    for (const { run } of tokenStoreChecks(() => created)) await run();
  });

  test('locks and compares versions where connections have other time zones', async () => {
    const [east, west] = ['Asia/Tokyo', 'America/New_York'].map(
      (zone) => new pg.Pool({ connectionString: postgres.connectionString, options: `-c TimeZone=${zone}` }),
    );
    const options = { createTableIfMissing: true, pruneSessionInterval: false } as const;
    const open = (zone: pg.Pool | undefined): TokenStore =>
      sessionTokenStore(new (connectPgSimple(session))({ ...options, pool: zone }));
    await locksAndCompares(open(east), open(west));
    await locksAndCompares(open(west), open(east));
    await Promise.all([east?.end(), west?.end()]);
  });

  test('lets the table end the grant after its time to live', async () => {
    await sessionTokenStore(store, { ttl: 100 }).set('ttl', grant);
    const { rows } = await pool.query(
      "SELECT expire - interval '2 days' - now()::timestamp BETWEEN '90 s' AND '110 s' AS good FROM session WHERE sid = 'oauth-app-grant.ttl'",
    );
    expect(rows).toEqual([{ good: true }]);
  });

  test('keeps a lease that is held, and a used login, from a clean-up by another clock or time zone', async () => {
    const zone = new pg.Pool({ connectionString: postgres.connectionString, options: '-c TimeZone=Asia/Tokyo' });
    onTestFinished(() => zone.end());
    const clean = (pool: pg.Pool): Promise<void> => {
      const other = new (connectPgSimple(session))({ pool, pruneSessionInterval: false });
      return new Promise((resolve, reject) => other.pruneSessions((error) => (error ? reject(error) : resolve())));
    };
    const tokenStore = sessionTokenStore(store, { ttl: 100 });
    await tokenStore.set('login:used', grant);
    await tokenStore.lock?.('held', async (lease) => {
      await clean(zone);
      vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
      await clean(pool).finally(() => vi.mocked(Date.now).mockRestore());
      expect(await lease?.isHeld()).toBe(true);
    });
    expect(await tokenStore.get('login:used')).toEqual(grant);
  });

  test('adds a grant over one whose time to live has ended, and over no other', async () => {
    const tokenStore = sessionTokenStore(store, { ttl: 100 });
    await tokenStore.set('ended', grant);
    expect(await tokenStore.add?.('ended', grant)).toBe(false);
    await pool.query(
      `UPDATE session SET sess = jsonb_set(sess::jsonb, '{endsAt}', '1'), expire = '2000-01-01' WHERE sid = 'oauth-app-grant.ended'`,
    );
    expect(await tokenStore.add?.('ended', grant)).toBe(true);
    expect(await tokenStore.get('ended')).toEqual(grant);
  });
});

describe.skipIf(!hasPostgres() || !hasFaketime())(
  'over connect-pg-simple, in the hour that comes twice',
  threats(78),
  () => {
    // 02:30 in Berlin, first summer time, then winter time.
    const passes = [new Date('2026-10-25T00:30:00Z'), new Date('2026-10-25T01:30:00Z')];
    test.each(passes)('locks, compares versions, and ends grants and leases in time (%o)', async (startsAt) => {
      const postgres = await startPostgres({ timeZone: 'Europe/Berlin', startsAt });
      const pool = new pg.Pool({ connectionString: postgres.connectionString });
      try {
        const Store = connectPgSimple(session);
        const options = { pool, createTableIfMissing: true, pruneSessionInterval: false } as const;
        const open = (): TokenStore => sessionTokenStore(new Store(options), { ttl: 100 });
        const { rows } = await pool.query('SELECT localtime(0)::text AS at');
        expect(rows[0].at).toMatch(/^02:3/);
        await locksAndCompares(open(), open());
        const later = (seconds: number): Promise<unknown> =>
          pool.query(
            `UPDATE session SET sess = jsonb_set(sess::jsonb, '{endsAt}', to_jsonb((sess->>'endsAt')::bigint - $1 * 1000)),
            expire = expire - $1 * interval '1 s'`,
            [seconds],
          );
        await open().lock?.('left', async () => {
          await later(29);
          const waiting = open().lock?.('left', async () => 'taken');
          expect((await open().get('shared'))?.version).toBe(2);
          await later(2);
          expect(await waiting).toBe('taken');
        });
        await later(100);
        expect(await open().get('shared')).toBeUndefined();
      } finally {
        await pool.end();
        await postgres.stop();
      }
    });
  },
);
