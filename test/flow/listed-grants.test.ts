import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { type GrantSummary, memoryTokenStore, type StoredGrant, type TokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { fastForward, withoutPauses } from '../support/fast-forward.js';
import { mayLeave } from '../support/may-leave.js';
import { browser, clock, loggedIn, open, projects, whoami, world } from '../support/one-world.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser } from '../support/world.js';

const keyed = { grantId: byUser };
const users = ['1', '2'].map((id) => ({ id, name: id, domain: 'acme', projects: [] }));

async function all(grants: AsyncIterable<GrantSummary>): Promise<GrantSummary[]> {
  const found: GrantSummary[] = [];
  for await (const grant of grants) found.push(grant);
  return found.sort((one, other) => (one.grantId < other.grantId ? -1 : 1));
}

/** A record without encryption, as version 0.1 wrote it. */
function formerRecord(id: string, refreshToken: string | null = 'r'): StoredGrant {
  const [expiresAt, lineage] = [Date.UTC(2030, 0, 1), 'lineage'];
  const content = {
    id,
    lineage,
    generation: 3,
    expiresAt,
    accessToken: 'a',
    refreshToken: refreshToken ?? undefined,
    lifetimeMs: 7_200_000,
  };
  return { version: 7, expiresAt, sealed: Buffer.from(JSON.stringify(content)).toString('base64url') };
}

describe('the grants of a strategy', () => {
  test('are told with what is known of them, and no token', async () => {
    const tokenStore = memoryTokenStore();
    await loggedIn({ service: { users }, strategy: { ...keyed, tokenStore, organizationDomain: undefined } });
    const loggedInAt = clock.now();
    clock.advance(7_200);
    await projects();
    await world.logIn(new Browser(), '2');
    const common = {
      organizationDomain: 'acme',
      scope: ['project', 'tm'],
      refreshTokenExpiresAt: undefined,
      ended: false,
    };
    const expected = [
      { grantId: '1', subject: '1', createdAt: loggedInAt, refreshedAt: clock.now(), ...common },
      { grantId: '2', subject: '2', createdAt: clock.now(), refreshedAt: undefined, ...common },
    ].map((grant) => ({ ...grant, expiresAt: clock.now() + 7_200_000 }));
    expect(await all(world.strategy.grants())).toEqual(expected);
    expect(await world.strategy.grant('1')).toEqual(expected[0]);
    expect(JSON.stringify(await all(world.strategy.grants()))).not.toMatch(/eyJ|token"/i);
  });

  test('are those of this strategy alone, whatever else the store holds', async () => {
    const tokenStore = memoryTokenStore();
    const [one, other] = [
      await open({ strategy: { ...keyed, tokenStore } }),
      await open({ strategy: { ...keyed, tokenStore, name: 'other' } }),
    ];
    await one.logIn(browser, '1');
    await other.logIn(browser, '2');
    await tokenStore.set(`${storeId(one.service.options, '')}%E0%A4%A`, formerRecord('?'));
    await tokenStore.set('login:mark', formerRecord('login:mark'));
    expect((await all(one.strategy.grants())).map(({ grantId }) => grantId)).toEqual(['1']);
    expect((await all(other.strategy.grants())).map(({ grantId }) => grantId)).toEqual(['2']);
    expect(await one.strategy.grant('2')).toBeUndefined();
  });

  test('are told as ended once the service has refused them, or no token is valid any more', async () => {
    const tokenStore = memoryTokenStore();
    await loggedIn({ strategy: { ...keyed, tokenStore } });
    const id = storeId(world.service.options, 'brief');
    await tokenStore.set(id, formerRecord(id, null));
    world.service.revoke('1');
    clock.advance(7_200);
    expect((await withoutPauses(projects, world.service.authUrl)).status).toBe(302);
    const ended = (await all(world.strategy.grants())).map((grant) => [grant.grantId, grant.ended]);
    expect(ended).toEqual([
      ['1', true],
      ['brief', true],
    ]);
    expect(await world.strategy.grant('1')).toMatchObject({ subject: '1', ended: true });
  });

  test('without a refresh token end with their access tokens, unless they are the application’s', async () => {
    const [tokenStore, clock] = [memoryTokenStore(), new TestClock()];
    const applicationGrant = (id: string) => (id === 'machine' ? { grant_type: 'client_credentials' } : undefined);
    const { strategy } = await open({ strategy: { ...keyed, tokenStore, clock: clock.now, applicationGrant } });
    await strategy.importGrant('imported', { accessToken: await strategy.client('machine').accessToken() });
    clock.advance(2 * 7_200);
    expect(await strategy.grant('imported')).toMatchObject({ ended: true });
    expect(await strategy.grant('machine')).toMatchObject({ ended: false });
    expect(await strategy.keepAlive({ olderThan: 0 })).toEqual({ seen: 1, refreshed: 0, ended: 0, failed: 0 });
  });

  test('are read from records of earlier versions, without what these did not keep', async () => {
    const tokenStore = memoryTokenStore();
    const { strategy, service } = await open({ strategy: { ...keyed, tokenStore } });
    const id = storeId(service.options, 'früher');
    await tokenStore.set(id, formerRecord(id));
    const known = { grantId: 'früher', expiresAt: Date.UTC(2030, 0, 1), ended: false };
    expect(await all(strategy.grants())).toEqual([expect.objectContaining(known)]);
    expect(await strategy.grant('früher')).toEqual({
      ...known,
      subject: undefined,
      organizationDomain: undefined,
      scope: undefined,
      createdAt: undefined,
      refreshedAt: undefined,
      refreshTokenExpiresAt: undefined,
    });
  });

  test('are listed page by page, no further than they are asked for, and until the signal aborts', async () => {
    const inner = memoryTokenStore();
    let [listed, read, isEnded] = [0, 0, false];
    const tokenStore: TokenStore = {
      ...inner,
      get: async (id) => {
        read += 1;
        return formerRecord(id);
      },
      list: async function* () {
        try {
          for (; ; listed += 1) yield storeId(world.service.options, String(listed));
        } finally {
          isEnded = true;
        }
      },
    };
    await open({ strategy: { ...keyed, tokenStore } });
    const aborter = new AbortController();
    const reason = new Error('enough');
    let seen = 0;
    const reading = (async () => {
      for await (const grant of world.strategy.grants({ signal: aborter.signal })) {
        seen += 1;
        expect(grant.grantId).toMatch(/^\d+$/);
        expect(Math.max(listed, read) - seen).toBeLessThan(100);
        if (seen === 1_000) aborter.abort(reason);
      }
    })();
    await expect(reading).rejects.toBe(reason);
    expect(seen).toBeLessThanOrEqual(1_100);
    expect(isEnded).toBe(true);
    isEnded = false;
    for await (const _ of world.strategy.grants()) break;
    expect(isEnded).toBe(true);
  });

  test('leave the process time for others, where the store answers at once', async () => {
    const { strategy } = await open({ strategy: { tokenStore: memoryTokenStore() } });
    for (let id = 0; id < 500; id += 1) await strategy.importGrant(`${id}`, { accessToken: 'a', refreshToken: 'r' });
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    expect(await all(strategy.grants())).toHaveLength(500);
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  test('cannot be listed where the token store has no list; one is told all the same', async () => {
    await loggedIn();
    const { strategy } = world;
    const error = { name: 'ConfigurationError', code: 'ERR_NO_LIST', option: 'tokenStore', strategy: 'oauth-app' };
    await expect(all(strategy.grants())).rejects.toMatchObject(error);
    await expect(strategy.keepAlive({ olderThan: 60 })).rejects.toMatchObject(error);
    const { grantId } = await whoami();
    expect(await strategy.grant(grantId)).toMatchObject({ grantId, subject: '1', ended: false });
    expect(await strategy.grant('nobody')).toBeUndefined();
  });

  test('are listed on where the store fails to read one of them for a moment, and not where it is down', async () => {
    const tokenStore = new TroubledStore();
    const { strategy } = await open({ strategy: { tokenStore } });
    for (const id of ['one', 'other']) await strategy.importGrant(id, { accessToken: 'a', refreshToken: 'r' });
    const ids = async () => (await all(strategy.grants())).map(({ grantId }) => grantId);
    let failures = 0;
    tokenStore.before = (method, id) => {
      if (method === 'get' && id.endsWith('other') && failures++ === 0) throw new Error('The store is slow');
    };
    expect(await fastForward(ids)).toEqual(['one', 'other']);
    expect(failures).toBe(2);
    tokenStore.fail('get');
    await expect(fastForward(ids)).rejects.toMatchObject({ status: 503 });
  });

  test('listen once to the signal of whoever lists them, however many reads fail', async () => {
    // The pauses before its next reads.
    mayLeave(/pause|const timer/);
    const tokenStore = new TroubledStore();
    const { strategy } = await open({ strategy: { tokenStore } });
    for (const id of Array(20).keys()) await strategy.importGrant(`${id}`, { accessToken: 'a', refreshToken: 'r' });
    const [controller, reason] = [new AbortController(), new Error('enough')];
    let failures = 0;
    tokenStore.before = (method) => {
      if (method !== 'get') return;
      failures += 1;
      // Once all of them wait before they read again.
      if (failures === 20)
        setImmediate(() => {
          expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
          controller.abort(reason);
        });
      throw new Error('The store is slow');
    };
    await expect(all(strategy.grants({ signal: controller.signal }))).rejects.toBe(reason);
    expect(failures).toBe(20);
  });

  test('cannot be told while the store fails: that is an error, and no end', async () => {
    const down = () => Promise.reject(new Error('down'));
    const failing = (part: Partial<TokenStore>) =>
      open({ strategy: { tokenStore: { ...memoryTokenStore(), ...part } } });
    const [unread, unlisted] = [
      await failing({ get: down }),
      await failing({ list: () => ({ [Symbol.asyncIterator]: () => ({ next: down }) }) }),
    ];
    await expect(unread.strategy.grant('1')).rejects.toMatchObject({ name: 'TokenStoreError' });
    await expect(all(unlisted.strategy.grants())).rejects.toMatchObject({ name: 'TokenStoreError' });
    const wrong = { singal: new AbortController().signal } as object;
    await expect(all(unread.strategy.grants(wrong))).rejects.toThrow(/^singal: is not an option of grants/);
  });
});
