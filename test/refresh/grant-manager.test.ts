import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GrantCodec } from '../../src/grants/grant-codec.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { GrantCredentials } from '../../src/refresh/grant-credentials.js';
import { GrantManager } from '../../src/refresh/grant-manager.js';
import { type FaultyServer, hang, json, startFaultyServer } from '../support/faulty-server.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { endpointAt } from './fixture.js';

const EMPTY = { flights: 0, unsaved: 0, outages: 0, repository: 0, coolDowns: 0, ahead: 0 };

let server: FaultyServer;
let store: TroubledStore;
let clock: TestClock;
let manager: GrantManager;
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
  manager = new GrantManager({
    strategyName: 'oauth-app',
    store,
    codec: new GrantCodec([]),
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
  await manager.put('id', tokens('first'));
  store.calls.length = 0;
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
  expect(store.calls).toEqual([]);
});

it('gives a due grant at once, and refreshes it in the background', async () => {
  await manager.put('id', tokens('first'));
  clock.advance(7_200 - 60);
  await manager.current('id');
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
  await vi.waitFor(() => expect(manager.current('id')).toMatchObject({ accessToken: `access-${serial}` }));
  expect(server.requests).toHaveLength(1);
  await manager.close();
  expect(manager.sizes).toEqual(EMPTY);
});

it('lets 32 refreshes at once run with nobody waiting for them, and no more', async () => {
  server.always(hang());
  for (let index = 0; index < 50; index++) await manager.put(`${index}`, tokens(`${index}`));
  clock.advance(7_200 - 60);
  await Promise.all(Array.from({ length: 50 }, (_, index) => manager.current(`${index}`)));
  await vi.waitFor(() => expect(server.requests).toHaveLength(32));
  expect(manager.sizes).toMatchObject({ flights: 32, ahead: 50 });
  await manager.close();
  expect(manager.sizes.ahead).toBe(0);
});

it('renews a refused token once, takes what others have got, and rests while new ones are refused', async () => {
  await manager.put('id', tokens('first'));
  const renewed = await manager.renew('id', 'access-first');
  expect(await manager.renew('id', 'access-first')).toBe(renewed);
  manager.reportOutcome('id', false);
  expect((await manager.renew('id', renewed.accessToken)).accessToken).toBe(renewed.accessToken);
  expect(server.requests).toHaveLength(1);
  clock.advance(1);
  expect((await manager.renew('id', renewed.accessToken)).accessToken).not.toBe(renewed.accessToken);
  manager.reportOutcome('id', true);
  expect(manager.sizes).toEqual(EMPTY);
});

it('THREATS 49: keeps nothing of a grant that was removed while it was being refreshed, nor if the save fails then', async () => {
  for (const fails of [false, true]) {
    await manager.put('id', tokens('first'));
    clock.advance(7_200);
    store.before = async (method) => {
      if (method !== 'update') return;
      void manager.remove('id').catch(() => {});
      if (fails) throw new Error('The store fails');
    };
    await Promise.resolve(manager.current('id')).catch(() => {});
    store.recover();
    await vi.waitFor(async () => expect(await store.inner.get('oauth-app+id')).toBeUndefined());
    await expect(Promise.resolve().then(() => manager.current('id'))).rejects.toMatchObject({ status: 401 });
    await vi.waitFor(() => expect(manager.sizes).toEqual(EMPTY));
  }
});

it('THREATS 49: keeps nothing of a refresh that began while the grant was being removed, if its save fails', async () => {
  await manager.put('id', tokens('first'));
  clock.advance(7_200);
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  store.before = (method) => {
    if (method === 'update') throw new Error('The store fails');
    return method === 'delete' ? held : undefined;
  };
  const removing = manager.remove('id');
  const late = Promise.resolve(manager.current('id')).catch((error: unknown) => error);
  await server.received(1);
  goOn();
  await removing;
  expect(await late).toMatchObject({ status: 401 });
  await expect(Promise.resolve().then(() => manager.current('id'))).rejects.toMatchObject({ status: 401 });
  await vi.waitFor(() => expect(manager.sizes).toEqual(EMPTY));
});

it('has no grant after a login that could not be saved', async () => {
  store.fail('set');
  await expect(manager.put('id', tokens('first'))).rejects.toMatchObject({ name: 'TokenStoreError' });
  store.recover();
  await expect(Promise.resolve().then(() => manager.current('id'))).rejects.toMatchObject({ status: 401 });
});

it('holds nothing by id after 2,000 grants have come and gone', async () => {
  for (let index = 0; index < 2_000; index++) {
    await manager.put(`${index}`, tokens(`${index}`));
    manager.reportOutcome(`${index}`, false);
    await manager.remove(`${index}`);
  }
  await vi.waitFor(() => expect(manager.sizes).toEqual(EMPTY));
});

it('keeps a rotated pair that is not saved yet when the login after it cannot be saved either', async () => {
  await manager.put('id', tokens('first'));
  clock.advance(7_200);
  store.fail('update', 'set');
  const rotated = await manager.current('id');
  expect(manager.sizes.unsaved).toBe(1);
  await expect(manager.put('id', tokens('second'))).rejects.toThrow('The token store failed');
  expect(await manager.current('id')).toBe(rotated);
  store.recover();
  await manager.put('id', tokens('third'));
  expect(manager.sizes).toEqual(EMPTY);
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-third' });
});

it('keeps what a refresh brings while a login that cannot be saved is under way', async () => {
  await manager.put('id', tokens('first'));
  clock.advance(7_200);
  let answer = () => {};
  server.next((socket, request) => {
    answer = () =>
      json({ access_token: 'rotated', token_type: 'bearer', expires_in: 7200, refresh_token: 'next' })(socket, request);
  });
  const refreshed = manager.current('id');
  await vi.waitFor(() => expect(server.requests).toHaveLength(1));
  store.fail('set', 'update');
  await expect(manager.put('id', tokens('second'))).rejects.toThrow('The token store failed');
  answer();
  expect(await refreshed).toMatchObject({ accessToken: 'rotated' });
  expect(manager.current('id')).toMatchObject({ accessToken: 'rotated', refreshToken: 'next' });
});

it('gives a call that a logout has overtaken what it asked for, and the client stays without authorization', async () => {
  await manager.put('id', tokens('first'));
  clock.advance(31);
  const source = new GrantCredentials(manager, 'id');
  const asked = source.credential();
  source.end();
  expect(await asked).toMatchObject({ accessToken: 'access-first' });
  expect([source.authorized, source.isAliveIn(manager)]).toEqual([false, false]);
});

it('keeps a good token that the API has refused where there is no refresh token to get another one with', async () => {
  await manager.put('id', { ...tokens('only'), refreshToken: undefined });
  expect(await manager.renew('id', 'access-only')).toMatchObject({ accessToken: 'access-only' });
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-only' });
  clock.advance(7_200);
  await expect(manager.renew('id', 'access-only')).rejects.toMatchObject({ status: 401 });
});

it('refreshes nothing once it is closed: the pair might be lost', async () => {
  await manager.put('id', tokens('first'));
  await manager.close();
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
  clock.advance(7_200);
  await expect(manager.current('id')).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('closed'),
  });
  expect(server.requests).toEqual([]);
});

describe('an answer that brings a new refresh token and cannot be used otherwise', () => {
  const unusable = (refresh_token: string) => json({ access_token: 'a b', token_type: 'bearer', refresh_token });
  const shown = () => server.requests.map(({ body }) => JSON.parse(body.toString()).refresh_token);

  it('costs nobody the login: the next refresh shows the new one', async () => {
    await manager.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('refresh-successor'));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    expect(await manager.current('id')).toMatchObject({ refreshToken: expect.stringMatching(/^refresh-\d/) });
    expect(shown()).toEqual(['refresh-first', 'refresh-successor']);
  });

  it('costs nobody the login either where the service does not know that token: the former one is shown then', async () => {
    await manager.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('made-up'));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    server.next(json({ error: 'invalid_grant' }, 400));
    const grant = await manager.current('id');
    expect(shown()).toEqual(['refresh-first', 'made-up', 'refresh-first']);
    expect(grant).not.toHaveProperty('previousRefreshToken');
  });

  it('leaves the former one in its place where it works and nothing else comes', async () => {
    await manager.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('made-up'));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    server.next(json({ error: 'invalid_grant' }, 400));
    server.next(json({ access_token: 'second', token_type: 'bearer', expires_in: 7200 }));
    expect(await manager.current('id')).toMatchObject({ accessToken: 'second', refreshToken: 'refresh-first' });
  });

  it('is remembered by the store', async () => {
    await manager.put('id', tokens('first'));
    clock.advance(7_200);
    server.next(unusable('refresh-successor'));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    const record = await store.inner.get('oauth-app+id');
    expect(await new GrantCodec([]).read('oauth-app+id', record)).toMatchObject({
      accessToken: 'access-first',
      refreshToken: 'refresh-successor',
      previousRefreshToken: 'refresh-first',
    });
  });
});
