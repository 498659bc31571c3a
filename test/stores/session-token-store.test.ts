import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import connectPgSimple from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import pg from 'pg';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { tokenStoreChecks } from '../../src/stores/conformance/index.js';
import { type SessionStoreLike, sessionTokenStore } from '../../src/stores/session-token-store.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { hasRedis, type RedisServer, startRedis } from '../support/redis-server.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text', future: { field: [1, 'two'] } };

// It has no types of its own.
const sessionFileStore: (express: typeof session) => new (options: object) => SessionStoreLike = createRequire(
  import.meta.url,
)('session-file-store');

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

it('keeps a grant in a record that looks like a session, beside the sessions', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
  const set = vi.fn((_sid: string, _session: object, callback: () => void) => callback());
  await sessionTokenStore(fakeStore({ set }), { ttl: 60 }).set('a+b%2F', grant);
  const cookie = { originalMaxAge: 60_000, maxAge: 60_000, expires: new Date(1_060_000), httpOnly: true, path: '/' };
  expect(set).toHaveBeenCalledWith('oauth-app-grant.a+b%2F', { cookie, grant }, expect.any(Function));
});

it('keeps grants for 30 days unless told otherwise, counted anew at each set', async () => {
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

it('gives no grant for a session, or for a record that is none', async () => {
  for (const found of [undefined, null, 'text', {}, { cookie: {} }, { grant: {} }, { grant: { version: 'one' } }]) {
    const store = sessionTokenStore(fakeStore({ get: (_sid, callback) => callback(null, found) }));
    expect(await store.get('id')).toBeUndefined();
  }
});

it('takes a missing file for a missing grant, as express-session does', async () => {
  const missing = Object.assign(new Error('no such file'), { code: 'ENOENT' });
  const store = sessionTokenStore(
    fakeStore({ get: (_sid, callback) => callback(missing), destroy: (_sid, callback) => callback(missing) }),
  );
  expect(await store.get('id')).toBeUndefined();
  await expect(store.delete('id')).resolves.toBeUndefined();
});

it('rejects with a TokenStoreError that quotes no secret, however the session store fails', async () => {
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

it('counts the first answer alone of a store that calls back twice', async () => {
  const get: SessionStoreLike['get'] = (_sid, callback) => {
    callback(null, { grant });
    callback(new Error('again'));
  };
  expect(await sessionTokenStore(fakeStore({ get })).get('id')).toEqual(grant);
});

it('keeps ids apart that would leave the folder of a file store, or are too long for a key', async () => {
  const keys: string[] = [];
  const set: SessionStoreLike['set'] = (sid, _session, callback) => callback(keys.push(sid) && undefined);
  const store = sessionTokenStore(fakeStore({ set }));
  for (const id of ['../../etc/passwd', 'a'.repeat(1024), 'b'.repeat(1024), 'x=y', '\0', 'übung'])
    await store.set(id, grant);
  expect(new Set(keys).size).toBe(6);
  for (const key of keys) expect(key).toMatch(/^oauth-app-grant\.=[\w-]{43}$/);
});

it('names what is wrong at creation', () => {
  const store = fakeStore();
  // @ts-expect-error: not a store
  expect(() => sessionTokenStore(undefined)).toThrow(/store must be an express-session store.*get, set, destroy/);
  // @ts-expect-error: not a whole store
  expect(() => sessionTokenStore({ get: store.get, set: store.set })).toThrow(/no method destroy/);
  // @ts-expect-error: misspelt
  expect(() => sessionTokenStore(store, { tll: 5 })).toThrow(/unknown option "tll"/);
  for (const ttl of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => sessionTokenStore(store, { ttl })).toThrow(/"ttl" must be a number of seconds/);
  }
  for (const prefix of ['', 'a b', 'a/b', 'a\\b', 'x'.repeat(65)]) {
    expect(() => sessionTokenStore(store, { prefix })).toThrow(/"prefix" must be/);
  }
});

const folders: string[] = [];

async function fileStore(options: object = {}): Promise<{ store: SessionStoreLike; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'grants-'));
  folders.push(folder);
  const FileStore = sessionFileStore(session);
  return { store: new FileStore({ path: folder, reapInterval: -1, logFn: () => undefined, ...options }), folder };
}

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

function checkAll(createStore: () => SessionStoreLike | Promise<SessionStoreLike>): void {
  for (const { name, run } of tokenStoreChecks(async () => sessionTokenStore(await createStore()))) it(name, run);
}

describe('over the MemoryStore of express-session', () => checkAll(() => new session.MemoryStore()));

describe('over session-file-store', () => {
  checkAll(async () => (await fileStore({ retries: 0 })).store);

  it('makes a file for each grant, and finds a missing one with its retries left as they are', async () => {
    const { store, folder } = await fileStore();
    const tokens = sessionTokenStore(store);
    await tokens.set('id', grant);
    expect(await readdir(folder)).toEqual(['oauth-app-grant.id.json']);
    await tokens.delete('id');
    expect(await tokens.get('id')).toBeUndefined();
  });
});

describe.skipIf(!hasRedis())('over connect-redis', () => {
  let redis: RedisServer;
  let client: ReturnType<typeof createClient>;

  beforeAll(async () => {
    redis = await startRedis();
    client = createClient({ url: redis.url });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await redis.stop();
  });

  checkAll(() => new RedisStore({ client }));

  it('lets Redis end the grant after its time to live', async () => {
    await sessionTokenStore(new RedisStore({ client }), { ttl: 100 }).set('id', grant);
    expect(await client.ttl('sess:oauth-app-grant.id')).toBeOneOf([99, 100]);
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

  it('lets the table end the grant after its time to live', async () => {
    await sessionTokenStore(store, { ttl: 100 }).set('id', grant);
    const { rows } = await pool.query(
      "SELECT expire > now() + interval '90 s' AND expire < now() + interval '110 s' AS good FROM session WHERE sid = $1",
      ['oauth-app-grant.id'],
    );
    expect(rows).toEqual([{ good: true }]);
  });
});
