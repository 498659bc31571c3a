import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { Pool, Client as PostgresClient } from 'pg';
import { createClient } from 'redis';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import type { EventLog } from '../support/event-log.js';
import { another, clock, listen, loggedIn, projects, refreshTokens, whoami, world } from '../support/one-world.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { storeId } from '../support/store-id.js';
import { byUser } from '../support/world.js';

const HOURS = 3600;
const OLD_KEY = 'the old key, which is long enough to be one';
const NEW_KEY = 'the new key, which is long enough to be one';

let events: EventLog;

/** Every run of 12 characters of the tokens that the service has given, also as they look in base64 of any alignment. */
function fragments(texts: readonly string[]): Set<string> {
  const runs = new Set<string>();
  for (const text of texts.flatMap(disguises)) {
    for (let index = 0; index + 12 <= text.length; index++) runs.add(text.slice(index, index + 12));
  }
  return runs;
}

function disguises(text: string): string[] {
  const shifted = [0, 1, 2].map((shift) => Buffer.from(`${'{'.repeat(shift)}${text}`));
  // The first and the last characters depend on what stands around.
  const encoded = shifted.flatMap((bytes) => [bytes.toString('base64'), bytes.toString('base64url')]);
  return [text, ...encoded.map((one) => one.slice(4, -4))];
}

function expectNoFragment(dump: string, tokens: readonly string[]): void {
  expect(dump).toMatch(/eyJ/);
  const found = [...fragments(tokens)].filter((run) => dump.includes(run));
  // What all JWTs have in common: their header.
  expect(
    found.filter((run) => !Buffer.from('{"alg":"dir","enc":"A256GCM","kid":"').toString('base64url').includes(run)),
  ).toEqual([]);
}

/** Tokens as the service saw them: access tokens that were used, refresh tokens that were shown. */
function seenTokens(): string[] {
  const { requests } = world.service;
  const access = requests.flatMap(({ headers }) => headers.authorization?.replace('Bearer ', '') ?? []);
  return [...access, ...refreshTokens().flatMap((token) => token ?? [])];
}

/** Logs in, uses the token, lets it be refreshed twice. */
async function useTokens(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    expect((await projects()).status).toBe(200);
    clock.advance(2 * HOURS);
  }
  expect(seenTokens().length).toBeGreaterThanOrEqual(5);
}

describe('a raw dump of a store, with encryption on,', () => {
  test('of the application sessions holds no token and no fragment of one', async () => {
    await loggedIn({ strategy: { encryptionKeys: OLD_KEY } });
    await useTokens();
    expectNoFragment(JSON.stringify(Reflect.get(world.store, 'sessions')), seenTokens());
  });

  test.skipIf(!hasRedis())('of Redis holds no token and no fragment of one', async () => {
    const server = await startRedis();
    const client = createClient({ url: server.url });
    await client.connect();
    await loggedIn({ strategy: { encryptionKeys: OLD_KEY, tokenStore: redisTokenStore(client) } });
    await useTokens();
    const keys = await client.keys('*');
    const dump = await Promise.all(keys.map(async (key) => `${key} ${await client.get(key)}`));
    expectNoFragment(dump.join('\n'), seenTokens());
    await client.close();
    await server.stop();
  });

  test.skipIf(!hasPostgres())('of PostgreSQL holds no token and no fragment of one', async () => {
    const server = await startPostgres();
    const pool = new Pool({ connectionString: server.connectionString });
    await loggedIn({ strategy: { encryptionKeys: OLD_KEY, tokenStore: postgresTokenStore(pool) } });
    await useTokens();
    const client = new PostgresClient({ connectionString: server.connectionString });
    await client.connect();
    const tables = await client.query(
      "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname !~ '^(pg_|information)'",
    );
    const rows = await Promise.all(tables.rows.map(({ name }) => client.query(`select t::text from ${name} t`)));
    expectNoFragment(JSON.stringify(rows.map(({ rows: found }) => found)), seenTokens());
    await client.end();
    await pool.end();
    await server.stop();
  });
});

describe('a sealed grant', { meta: { threats: [29, 53] } }, () => {
  const store = () => memoryTokenStore();
  let grantId = '';
  const idOf = async () => {
    grantId = (await whoami()).grantId;
    return storeId(world.service.options, grantId);
  };

  /** Another process, with these keys. */
  async function withKeys<T>(
    tokenStore: TokenStore,
    keys: string | string[] | undefined,
    use: (token: Promise<string>) => Promise<T>,
  ): Promise<T> {
    const encryption = keys === undefined ? {} : { encryptionKeys: keys };
    const other = await another({ strategy: { tokenStore, ...encryption } });
    events = listen('grant-lost');
    return use(other.strategy.client(grantId).accessToken());
  }

  test('with an old key is readable, and sealed with the new one when it is written next', async () => {
    const tokenStore = store();
    await loggedIn({ strategy: { tokenStore, encryptionKeys: OLD_KEY } });
    const id = await idOf();
    await withKeys(tokenStore, [NEW_KEY, OLD_KEY], async (token) => expect(await token).toMatch(/^eyJ/));
    clock.advance(2 * HOURS);
    await withKeys(tokenStore, [NEW_KEY, OLD_KEY], async (token) => expect(await token).toMatch(/^eyJ/));
    const kid = (sealed?: string) => JSON.parse(Buffer.from(sealed?.split('.')[0] ?? '', 'base64url').toString()).kid;
    const after = kid((await tokenStore.get(id))?.sealed);
    expect(after).toMatch(/^[\w-]{8}$/);
    await withKeys(tokenStore, NEW_KEY, async (token) => expect(await token).toMatch(/^eyJ/));
  });

  const unreadable: readonly (readonly [string, string | undefined, (sealed: string) => string])[] = [
    ['with an unknown key', NEW_KEY, (sealed) => sealed],
    ['that is cut off', OLD_KEY, (sealed) => sealed.slice(0, -10)],
    [
      'that was changed',
      OLD_KEY,
      (sealed) => sealed.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')).replace(/\.(.)/, '.x$1'),
    ],
    ['that is empty', OLD_KEY, () => ''],
    ['where a plain one is expected', undefined, (sealed) => sealed],
    [
      'in the place of which a plain one stands',
      OLD_KEY,
      () => Buffer.from('{"accessToken":"x"}').toString('base64url'),
    ],
  ];

  test.each(unreadable)(
    '%s counts as no grant, is reported to the operator, and is kept',
    async (_what, keys, change) => {
      const tokenStore = store();
      await loggedIn({ strategy: { tokenStore, encryptionKeys: OLD_KEY } });
      const id = await idOf();
      const record = await tokenStore.get(id);
      const changed = { version: 1, expiresAt: 2, ...record, sealed: change(record?.sealed ?? '') };
      await tokenStore.set(id, changed);
      await withKeys(tokenStore, keys, async (token) =>
        expect(await token.catch((error) => error)).toMatchObject({ status: 401 }),
      );
      expect(events?.values('grant-lost', 'reason')).toEqual(['unreadable']);
      expect(await tokenStore.get(id)).toEqual(changed);
    },
  );

  test('that is moved to another user is refused', async () => {
    const tokenStore = store();
    const shared = { tokenStore, encryptionKeys: OLD_KEY, cache: false as const };
    await loggedIn({ strategy: { ...shared, grantId: byUser } });
    const ben = new Browser();
    await world.logIn(ben, '2');
    const adas = await tokenStore.get(storeId(world.service.options, '1'));
    if (!adas) throw new Error('Ada has no grant');
    await tokenStore.set(storeId(world.service.options, '2'), adas);
    expect((await ben.visit(`${world.url}/projects`)).status).toBe(302);
    expect((await projects()).status).toBe(200);
  });

  test('or a plain one whose domain was edited by hand is refused on read', async () => {
    const tokenStore = store();
    await loggedIn({ strategy: { tokenStore, cache: false } }, '2');
    const id = await idOf();
    const record = await tokenStore.get(id);
    const content = JSON.parse(Buffer.from(record?.sealed ?? '', 'base64url').toString());
    for (const organizationDomain of ['evil.example', 'a/b', 'x@y', '', 7]) {
      const sealed = Buffer.from(JSON.stringify({ ...content, organizationDomain })).toString('base64url');
      await tokenStore.set(id, { version: 1, expiresAt: 2, sealed });
      world.service.requests.length = 0;
      const page = await projects();
      if (organizationDomain === '') expect(page.status).toBe(200);
      else expect(page.status).toBe(302);
      expect(world.service.requests.filter(({ headers }) => /evil|a\/b/.test(headers.host ?? ''))).toEqual([]);
    }
  });
});
