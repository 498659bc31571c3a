import { memoryTokenStore } from 'passport-oauth-app';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { Pool, Client as PostgresClient } from 'pg';
import { createClient } from 'redis';
import { describe, expect, test } from 'vitest';
import { another } from '../support/another.js';
import { listen } from '../support/event-log.js';
import { clock, loggedIn, projects, refreshTokens, whoami, world } from '../support/one-world.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';

const HOURS = 3600;
const OLD_KEY = 'the old key, which is long enough to be one';
const NEW_KEY = 'the new key, which is long enough to be one';

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

test(
  'a sealed grant is read with the former of two keys; with an unknown one it is reported, and kept',
  threats(53),
  async () => {
    const tokenStore = memoryTokenStore();
    await loggedIn({ strategy: { tokenStore, encryptionKeys: OLD_KEY } });
    const { grantId } = await whoami();
    const id = storeId(world.service.options, grantId);
    const record = await tokenStore.get(id);
    const events = listen('grant-lost');
    const readWith = async (encryptionKeys: string | string[]) => {
      const { strategy } = await another({ strategy: { tokenStore, encryptionKeys } });
      return strategy.client(grantId).accessToken();
    };
    expect(await readWith([NEW_KEY, OLD_KEY])).toMatch(/^eyJ/);
    await expect(readWith(NEW_KEY)).rejects.toMatchObject({ status: 401 });
    expect(events.values('grant-lost', 'reason')).toEqual(['unreadable']);
    expect(record).toBeDefined();
    expect(await tokenStore.get(id)).toEqual(record);
  },
);
