import { describe, expect } from 'vitest';
import { checkedGrantId, freshness, type Grant, GrantCodec, isLaterSibling, isOlder } from '../../src/grants/grant.js';
import type { StoredGrant } from '../../src/index.js';
import { type Grants, grantOf, test, tokens } from '../refresh/fixture.js';
import { json } from '../support/faulty-server.js';
import { threats } from '../support/threats.js';

const [OLD, _NEW] = ['the old key, which is long enough', 'the new key, which is long enough'];
const STORE_ID = 'oauth-app+id';

/** Saves a grant with these keys, and returns its record. */
async function recordOf({ another, store }: Grants, encryptionKeys: readonly string[]): Promise<StoredGrant> {
  await another({ encryptionKeys }).put('id', tokens('secret', { organizationDomain: 'acme', subject: '7' }));
  const record = await store.inner.get(STORE_ID);
  if (!record) throw new Error('nothing was saved');
  return record;
}

/** Returns what a process with these keys makes of the record: the access token, or 401, and whether it reports it. */
async function read({ another, store, use, lost }: Grants, record: unknown, encryptionKeys: readonly string[]) {
  const inner = store.inner.get;
  const reported = lost.length;
  store.inner.get = async () => record as StoredGrant;
  try {
    const used = await use(another({ encryptionKeys }));
    return lost.length > reported ? `${used}, ${lost.at(-1)}` : used;
  } finally {
    store.inner.get = inner;
  }
}

describe.each([
  ['without keys', []],
  ['with keys', [OLD]],
])('a record %s', (_how, keys) => {
  test('decodes to the grant that was saved, also without a refresh token', async ({ grants }) => {
    const [writer, reader] = [grants.another({ encryptionKeys: keys }), grants.another({ encryptionKeys: keys })];
    for (const changes of [{ organizationDomain: 'acme', subject: '7' }, { refreshToken: undefined }]) {
      await writer.put('id', tokens('a', changes));
      grants.clock.advance(31);
      expect(await reader.current('id')).toEqual(await writer.current('id'));
    }
  });

  test('keeps what is known of the grant', async ({ grants: { another, clock, service } }) => {
    const [manager, reader] = [another({ encryptionKeys: keys }), another({ encryptionKeys: keys, cache: false })];
    const [createdAt, scope] = [clock.now(), ['project', 'tm']];
    await manager.put('id', tokens('a', { scope, refreshTokenLifetimeMs: 86_400_000 }));
    const start = { scope, createdAt, refreshedAt: undefined, refreshTokenExpiresAt: createdAt + 86_400_000 };
    expect(await reader.current('id')).toMatchObject(start);
    const cases = [
      // The token is another one, and nothing is known of its end.
      [{ refresh_token: 'another' }, undefined],
      [{ refresh_token: 'another', refresh_token_expires_in: 8_000 }, 8_000],
      [{ refresh_token: 'another', refresh_token_expires_in: '10800.5' }, 10_800.5],
      [{ refresh_token: 'one', refresh_token_expires_in: 0, refresh_expires_in: -1 }, undefined],
      [{ refresh_token: 'two', refresh_token_expires_in: 'soon', refresh_expires_in: 9_000 }, 9_000],
      // The token is the same: it ends when it was to end.
      [{}, 9_000 - 7_200],
    ] as const;
    for (const [answer, seconds] of cases) {
      clock.advance(7_200);
      service.next(json({ access_token: `access-${clock.now()}`, expires_in: 7_200, ...answer }));
      const refreshedAt = clock.now();
      const refreshTokenExpiresAt = seconds === undefined ? undefined : refreshedAt + seconds * 1000;
      await manager.current('id');
      expect(await reader.current('id')).toMatchObject({ scope, createdAt, refreshedAt, refreshTokenExpiresAt });
    }
  });

  test('that is damaged counts as no grant, and is reported', async ({ grants }) => {
    const record = await recordOf(grants, keys);
    const damaged = [1, 'text', [], {}, { sealed: 'x' }, { version: 1, sealed: 7 }, { version: 1, sealed: '' }];
    for (const one of [...damaged, { ...record, version: 1.5 }, { ...record, sealed: `${record.sealed}%` }])
      expect(await read(grants, one, keys)).toBe('401, unreadable');
    for (const none of [undefined, null]) expect(await read(grants, none, keys)).toBe(401);
  });
});

describe('an encrypted record', threats(53), () => {
  test('is a compact JWE with dir and A256GCM, another one each time', async ({ grants }) => {
    const { sealed } = await recordOf(grants, [OLD]);
    const [header = '', key] = sealed.split('.');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({
      alg: 'dir',
      enc: 'A256GCM',
      kid: expect.stringMatching(/^[\w-]{8}$/),
    });
    expect(key).toBe('');
    expect((await recordOf(grants, [OLD])).sealed).not.toBe(sealed);
  });
});

test.for([
  { accessToken: 'with space' },
  { accessToken: 'a\r\nb' },
  { accessToken: 7 },
  { accessToken: undefined },
  { refreshToken: 7 },
  { subject: {} },
  { expiresAt: 'soon' },
  { expiresAt: -1 },
  { lifetimeMs: null },
  { generation: null },
  { lineage: 7 },
  { id: 'oauth-app+ID' },
  { organizationDomain: 'evil.example' },
  { organizationDomain: 'a/b' },
  { organizationDomain: ['acme'] },
  { previousRefreshToken: 7 },
  { createdAt: '1' },
  { refreshedAt: -1 },
  { retryAt: null },
  { refreshTokenExpiresAt: {} },
  { scope: 'project' },
  { scope: ['project', 7] },
])('a record that was edited by hand to %j counts as no grant', threats(29), async (change, { grants }) => {
  const record = await recordOf(grants, []);
  const content = JSON.parse(Buffer.from(record.sealed, 'base64url').toString());
  const edited = (changes: object) => ({
    ...record,
    sealed: Buffer.from(JSON.stringify({ ...content, ...changes })).toString('base64url'),
  });
  for (const valid of [{}, { organizationDomain: null }, { organizationDomain: '' }])
    expect(await read(grants, edited(valid), [])).toBe('access-secret');
  expect(await read(grants, edited(change), [])).toBe('401, unreadable');
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe('with a leeway of one minute and refreshes ahead of five', () => {
  const cases: [left: number, lifetime: number, expected: string, changes?: Partial<Grant>][] = [
    [5 * MINUTE + 1, HOUR, 'fresh'],
    [5 * MINUTE, HOUR, 'due'],
    [MINUTE + 1, HOUR, 'due'],
    [MINUTE, HOUR, 'expired'],
    [-1, HOUR, 'expired'],
    // Below twenty minutes, both are shorter in proportion.
    [5 * MINUTE + 1, 20 * MINUTE, 'fresh'],
    [5 * MINUTE, 20 * MINUTE, 'due'],
    [2.5 * MINUTE + 1, 10 * MINUTE, 'fresh'],
    [2.5 * MINUTE, 10 * MINUTE, 'due'],
    [MINUTE / 2 + 1, 10 * MINUTE, 'due'],
    [MINUTE / 2, 10 * MINUTE, 'expired'],
    [HOUR, HOUR, 'fresh', { refreshTokenExpiresAt: 0 }],
    [0, HOUR, 'expired', { refreshTokenExpiresAt: 0 }],
    [10 * HOUR, 11 * HOUR, 'due', { refreshTokenExpiresAt: 4 * MINUTE }],
    [10 * HOUR, 11 * HOUR, 'expired', { refreshTokenExpiresAt: MINUTE }],
    [HOUR, HOUR, 'fresh', { refreshTokenExpiresAt: 1 }],
  ];
  test.for(cases)('a token with %i of %i ms left is %s (otherwise: %j)', ([left, lifetime, expected, changes]) => {
    const grant = grantOf('a', { expiresAt: left, lifetimeMs: lifetime, ...changes });
    expect(freshness(grant, 0, { leewayMs: MINUTE, aheadMs: 5 * MINUTE }, '')).toBe(expected);
  });
});

test('requests wait for a refresh in at most half of the lifetime, and none starts in the tenth after one', () => {
  const window = { leewayMs: 2 * HOUR, aheadMs: 2 * HOUR };
  const at = (leftMs: number, generation: number) =>
    freshness(grantOf('a', { expiresAt: leftMs, lifetimeMs: HOUR, generation }), 0, window, '');
  expect([at(HOUR / 2, 0), at(HOUR / 2 + 1, 0)]).toEqual(['expired', 'due']);
  expect([at(HOUR, 0), at(HOUR, 1), at(0.9 * HOUR + 1, 1), at(0.9 * HOUR, 1)]).toEqual([
    'due',
    'fresh',
    'fresh',
    'due',
  ]);
});

test('of the grants of one login, the later generation is the newer one, and of one generation the later answer', () => {
  const grant = grantOf('a', { generation: 1, expiresAt: 10, lifetimeMs: 5 });
  expect(isOlder(grant, { ...grant, generation: 2 })).toBe(true);
  expect(isOlder(grant, grant)).toBe(false);
  expect(isOlder(grant, { ...grant, generation: 2, lineage: 'another' })).toBe(false);
  expect(isLaterSibling({ ...grant, expiresAt: 11 }, grant)).toBe(true);
  expect(isLaterSibling(grant, grant)).toBe(false);
  // It ends later, and was issued at the same time.
  expect(isLaterSibling({ ...grant, expiresAt: 11, lifetimeMs: 6 }, grant)).toBe(false);
  expect(isLaterSibling({ ...grant, expiresAt: 11, generation: 2 }, grant)).toBe(false);
  expect(isLaterSibling({ ...grant, expiresAt: 11, lineage: 'another' }, grant)).toBe(false);
});

test('an id of the application has 1 to 800 characters once it is escaped, and is well-formed', () => {
  for (const id of ['1', 'a'.repeat(800), `${'a'.repeat(791)}   `]) expect(checkedGrantId(id)).toBe(id);
  const wrong = ['', 'a'.repeat(801), `${'a'.repeat(798)} `, '\ud800', 7, undefined];
  for (const id of wrong) {
    const got = typeof id === 'string' ? `got a text of ${id.length} characters` : `got ${typeof id}`;
    expect(() => checkedGrantId(id)).toThrow(
      expect.objectContaining({ option: 'grantId', message: expect.stringContaining(got) }),
    );
  }
});

test.for([{ lineage: undefined }, { generation: undefined }, { expiresAt: undefined }, { lifetimeMs: undefined }])(
  'a record without one of its members is damaged: %j',
  async (missing) => {
    const codec = new GrantCodec([]);
    const record = await codec.encode('id', { ...grantOf('a'), ...missing } as unknown as Grant);
    expect(await codec.decode('id', { ...record, expiresAt: 1 })).toBeUndefined();
  },
);
