import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GrantRecords } from '../../src/grants/grant-codec.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { GrantSource } from '../../src/refresh/grant-credentials.js';
import { GrantKeeper } from '../../src/refresh/grant-manager.js';
import { type FaultyServer, hang, json, startFaultyServer } from '../support/faulty-server.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { endpointAt } from './fixture.js';

const EMPTY = { flights: 0, unsaved: 0, outages: 0, repository: 0, coolDowns: 0, ahead: 0 };

let server: FaultyServer;
let store: TroubledStore;
let clock: TestClock;
let keeper: GrantKeeper;
let serial = 0;

beforeEach(async () => {
  server = await startFaultyServer();
  server.always((socket, request) => {
    serial += 1;
    json({
      access_token: `access-${serial}`,
      token_type: 'bearer',
      expires_in: 7200,
      refresh_token: `refresh-${serial}`,
    })(socket, request);
  });
  store = new TroubledStore();
  clock = new TestClock();
  keeper = new GrantKeeper({
    strategyName: 'oauth-app',
    store,
    records: new GrantRecords([]),
    endpoint: endpointAt(server.origin, clock),
    cache: { max: 1_000, ttlMs: 30_000 },
    window: { leewayMs: 30_000, aheadMs: 300_000 },
    clock: clock.now,
    onRefresh: () => {},
    onLost: () => {},
  });
});
afterEach(() => server.close());

function tokens(name: string): TokenSet {
  const none = { claims: {}, subject: undefined, organizationDomain: undefined, params: {} };
  return { accessToken: `access-${name}`, refreshToken: `refresh-${name}`, lifetimeMs: 7_200_000, ...none };
}

it('gives a cached grant at once, with no promise and no look into the store', async () => {
  await keeper.put('id', tokens('first'));
  store.calls.length = 0;
  expect(keeper.current('id')).toMatchObject({ accessToken: 'access-first' });
  expect(store.calls).toEqual([]);
});

it('gives a due grant at once, and refreshes it in the background', async () => {
  await keeper.put('id', tokens('first'));
  clock.advance(7_200 - 60);
  await keeper.current('id');
  expect(keeper.current('id')).toMatchObject({ accessToken: 'access-first' });
  await vi.waitFor(() => expect(keeper.current('id')).toMatchObject({ accessToken: `access-${serial}` }));
  expect(server.requests).toHaveLength(1);
  await keeper.close();
  expect(keeper.sizes).toEqual(EMPTY);
});

it('lets 32 refreshes at once run with nobody waiting for them, and no more', async () => {
  server.always(hang());
  for (let index = 0; index < 50; index++) await keeper.put(`${index}`, tokens(`${index}`));
  clock.advance(7_200 - 60);
  await Promise.all(Array.from({ length: 50 }, (_, index) => keeper.current(`${index}`)));
  await vi.waitFor(() => expect(server.requests).toHaveLength(32));
  expect(keeper.sizes).toMatchObject({ flights: 32, ahead: 50 });
  await keeper.close();
  expect(keeper.sizes.ahead).toBe(0);
});

it('renews a refused token once, takes what others have got, and rests while new ones are refused', async () => {
  await keeper.put('id', tokens('first'));
  const renewed = await keeper.renew('id', 'access-first');
  expect(await keeper.renew('id', 'access-first')).toBe(renewed);
  keeper.settled('id', false);
  expect((await keeper.renew('id', renewed.accessToken)).accessToken).toBe(renewed.accessToken);
  expect(server.requests).toHaveLength(1);
  clock.advance(1);
  expect((await keeper.renew('id', renewed.accessToken)).accessToken).not.toBe(renewed.accessToken);
  keeper.settled('id', true);
  expect(keeper.sizes).toEqual(EMPTY);
});

it('THREATS 49: keeps nothing of a grant that was removed while it was being refreshed, nor if the save fails then', async () => {
  for (const fails of [false, true]) {
    await keeper.put('id', tokens('first'));
    clock.advance(7_200);
    store.before = async (method) => {
      if (method !== 'update') return;
      void keeper.remove('id').catch(() => {});
      if (fails) throw new Error('The store fails');
    };
    await Promise.resolve(keeper.current('id')).catch(() => {});
    store.recover();
    await vi.waitFor(async () => expect(await store.inner.get('oauth-app+id')).toBeUndefined());
    await expect(Promise.resolve().then(() => keeper.current('id'))).rejects.toMatchObject({ status: 401 });
    await vi.waitFor(() => expect(keeper.sizes).toEqual(EMPTY));
  }
});

it('THREATS 49: keeps nothing of a refresh that began while the grant was being removed, if its save fails', async () => {
  await keeper.put('id', tokens('first'));
  clock.advance(7_200);
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  store.before = (method) => {
    if (method === 'update') throw new Error('The store fails');
    return method === 'delete' ? held : undefined;
  };
  const removing = keeper.remove('id');
  const late = Promise.resolve(keeper.current('id')).catch((error: unknown) => error);
  await server.received(1);
  goOn();
  await removing;
  expect(await late).toMatchObject({ status: 401 });
  await expect(Promise.resolve().then(() => keeper.current('id'))).rejects.toMatchObject({ status: 401 });
  await vi.waitFor(() => expect(keeper.sizes).toEqual(EMPTY));
});

it('has no grant after a login that could not be saved', async () => {
  store.fail('set');
  await expect(keeper.put('id', tokens('first'))).rejects.toMatchObject({ name: 'TokenStoreError' });
  store.recover();
  await expect(Promise.resolve().then(() => keeper.current('id'))).rejects.toMatchObject({ status: 401 });
});

it('holds nothing by id after 2,000 grants have come and gone', async () => {
  for (let index = 0; index < 2_000; index++) {
    await keeper.put(`${index}`, tokens(`${index}`));
    keeper.settled(`${index}`, false);
    await keeper.remove(`${index}`);
  }
  await vi.waitFor(() => expect(keeper.sizes).toEqual(EMPTY));
});

it('keeps a rotated pair that is not saved yet when the login after it cannot be saved either', async () => {
  await keeper.put('id', tokens('first'));
  clock.advance(7_200);
  store.fail('update', 'set');
  const rotated = await keeper.current('id');
  expect(keeper.sizes.unsaved).toBe(1);
  await expect(keeper.put('id', tokens('second'))).rejects.toThrow('The token store failed');
  expect(await keeper.current('id')).toBe(rotated);
  store.recover();
  await keeper.put('id', tokens('third'));
  expect(keeper.sizes).toEqual(EMPTY);
  expect(keeper.current('id')).toMatchObject({ accessToken: 'access-third' });
});

it('keeps what a refresh brings while a login that cannot be saved is under way', async () => {
  await keeper.put('id', tokens('first'));
  clock.advance(7_200);
  let answer = () => {};
  server.next((socket, request) => {
    answer = () =>
      json({ access_token: 'rotated', token_type: 'bearer', expires_in: 7200, refresh_token: 'next' })(socket, request);
  });
  const refreshed = keeper.current('id');
  await vi.waitFor(() => expect(server.requests).toHaveLength(1));
  store.fail('set', 'update');
  await expect(keeper.put('id', tokens('second'))).rejects.toThrow('The token store failed');
  answer();
  expect(await refreshed).toMatchObject({ accessToken: 'rotated' });
  expect(keeper.current('id')).toMatchObject({ accessToken: 'rotated', refreshToken: 'next' });
});

it('gives a call that a logout has overtaken what it asked for, and the client stays without authorization', async () => {
  await keeper.put('id', tokens('first'));
  clock.advance(31);
  const source = new GrantSource(keeper, 'id');
  const asked = source.credential();
  source.end();
  expect(await asked).toMatchObject({ accessToken: 'access-first' });
  expect([source.authorized, source.isAliveIn(keeper)]).toEqual([false, false]);
});

it('keeps a good token that the API has refused where there is no refresh token to get another one with', async () => {
  await keeper.put('id', { ...tokens('only'), refreshToken: undefined });
  expect(await keeper.renew('id', 'access-only')).toMatchObject({ accessToken: 'access-only' });
  expect(keeper.current('id')).toMatchObject({ accessToken: 'access-only' });
  clock.advance(7_200);
  await expect(keeper.renew('id', 'access-only')).rejects.toMatchObject({ status: 401 });
});

it('refreshes nothing once it is closed: the pair might be lost', async () => {
  await keeper.put('id', tokens('first'));
  await keeper.close();
  expect(keeper.current('id')).toMatchObject({ accessToken: 'access-first' });
  clock.advance(7_200);
  await expect(keeper.current('id')).rejects.toMatchObject({ status: 503, message: expect.stringContaining('closed') });
  expect(server.requests).toEqual([]);
});

describe('an answer that brings a new refresh token and cannot be used otherwise', () => {
  const unusable = (refresh_token: string) => json({ access_token: 'a b', token_type: 'bearer', refresh_token });
  const shown = () => server.requests.map(({ body }) => JSON.parse(body.toString()).refresh_token);

  it('costs nobody the login: the next refresh shows the new one', async () => {
    await keeper.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('refresh-successor'));
    await expect(keeper.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    expect(await keeper.current('id')).toMatchObject({ refreshToken: expect.stringMatching(/^refresh-\d/) });
    expect(shown()).toEqual(['refresh-first', 'refresh-successor']);
  });

  it('costs nobody the login either where the service does not know that token: the former one is shown then', async () => {
    await keeper.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('made-up'));
    await expect(keeper.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    server.next(json({ error: 'invalid_grant' }, 400));
    const grant = await keeper.current('id');
    expect(shown()).toEqual(['refresh-first', 'made-up', 'refresh-first']);
    expect(grant).not.toHaveProperty('formerRefreshToken');
  });

  it('leaves the former one in its place where it works and nothing else comes', async () => {
    await keeper.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('made-up'));
    await expect(keeper.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    server.next(json({ error: 'invalid_grant' }, 400));
    server.next(json({ access_token: 'second', token_type: 'bearer', expires_in: 7200 }));
    expect(await keeper.current('id')).toMatchObject({ accessToken: 'second', refreshToken: 'refresh-first' });
  });

  it('is remembered by the store', async () => {
    await keeper.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('refresh-successor'));
    await expect(keeper.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    const record = await store.inner.get('oauth-app+id');
    expect(await new GrantRecords([]).read('oauth-app+id', record)).toMatchObject({
      accessToken: 'access-first',
      refreshToken: 'refresh-successor',
      formerRefreshToken: 'refresh-first',
    });
  });
});
