import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FaultyServer, json, reset, startFaultyServer } from '../support/faulty-server.js';
import { TroubledStore } from '../support/troubled-store.js';
import { grantOf, refresherOver, repositoryOver } from './fixture.js';

const old = grantOf('old');
const answer = (name: string) =>
  json({ access_token: `access-${name}`, token_type: 'bearer', expires_in: 7200, refresh_token: `refresh-${name}` });
const refused = json({ error: 'invalid_grant' }, 400);

let server: FaultyServer;
let store: TroubledStore;
let parts: ReturnType<typeof refresherOver>;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new TroubledStore();
  parts = refresherOver(store, server.origin);
  await parts.repository.create('id', old);
});
afterEach(() => server.close());

const sent = () => server.requests.map(({ body }) => JSON.parse(body.toString()).refresh_token);

it('reads again, refreshes and saves, inside of the lock', async () => {
  server.next(answer('new'));
  store.calls.length = 0;
  const grant = await parts.refresher.refresh('id', old, 'expired');
  expect(grant).toMatchObject({ accessToken: 'access-new', refreshToken: 'refresh-new', refreshes: 1 });
  expect(store.calls).toEqual(['lock', 'get', 'update']);
  expect(await parts.repository.readAnew('id')).toEqual(grant);
  expect(parts.told).toEqual([{ outcome: 'refreshed' }]);
  expect(parts.refresher.sizes).toEqual({ flights: 0, unsaved: 0, outages: 0 });
});

it('adopts what somebody else has put in place, if it is good', async () => {
  const theirs = grantOf('theirs');
  await store.inner.delete('id');
  await repositoryOver(store.inner).repository.create('id', theirs);
  expect(await parts.refresher.refresh('id', old, 'expired')).toEqual(theirs);
  expect(sent()).toEqual([]);
  expect(parts.told).toEqual([{ outcome: 'adopted' }]);
});

it('THREATS 40: refreshes what a faster process has left, if that has expired as well', async () => {
  const theirs = grantOf('theirs', { expiresAt: 1 });
  server.next((socket, request) => {
    const rival = repositoryOver(store.inner).repository;
    void rival.replace('id', theirs, [old.version]).then(() => refused(socket, request));
  });
  server.next(answer('new'));
  expect(await parts.refresher.refresh('id', old, 'expired')).toMatchObject({ accessToken: 'access-new' });
  expect(sent()).toEqual(['refresh-old', 'refresh-theirs']);
});

it('deletes a grant that has no refresh token, without asking the service', async () => {
  const single = grantOf('single', { refreshToken: undefined });
  await parts.repository.create('id', single);
  await expect(parts.refresher.refresh('id', single, 'expired')).rejects.toMatchObject({ status: 401 });
  expect(sent()).toEqual([]);
  expect(parts.lost).toEqual(['refused']);
  expect(await store.inner.get('id')).toBeUndefined();
});

it('THREATS 42: is one for all who ask at once', async () => {
  server.next(answer('new'));
  const grants = await Promise.all(Array.from({ length: 1_000 }, () => parts.refresher.refresh('id', old, 'expired')));
  expect(new Set(grants).size).toBe(1);
  expect(sent()).toHaveLength(1);
});

it('that a login has overtaken is not joined by those who hold the new grant', async () => {
  const login = grantOf('login', { expiresAt: 1 });
  server.next(async (socket, request) => {
    parts.refresher.forget('id');
    await parts.repository.create('id', login);
    answer('late')(socket, request);
  });
  const late = parts.refresher.refresh('id', old, 'expired').catch((error: unknown) => error);
  await server.received(1);
  server.next(answer('new'));
  const grant = await parts.refresher.refresh('id', login, 'expired');
  await late;
  expect(grant.accessToken).toBe('access-new');
  expect(sent()).toEqual(['refresh-old', 'refresh-login']);
});

it.each([
  ['a login has put another grant in place', false],
  ['it is the grant of that login that is being refreshed', true],
])('whose save fails keeps its pair or not, where %s meanwhile', async (_what, isSuccessor) => {
  server.next((socket, request) => {
    parts.refresher.forget('id', isSuccessor ? old : grantOf('login'));
    store.fail('update');
    answer('new')(socket, request);
  });
  const grant = await parts.refresher.refresh('id', old, 'expired');
  expect(grant.accessToken).toBe(isSuccessor ? 'access-new' : 'access-old');
  expect(parts.told).toEqual([{ outcome: isSuccessor ? 'unsaved' : 'discarded' }]);
  expect(parts.refresher.sizes.unsaved).toBe(isSuccessor ? 1 : 0);
  parts.refresher.forget('id');
});

describe('a service that fails', () => {
  it('is left alone for a moment, without an event for each who asks meanwhile', async () => {
    server.next(reset());
    await expect(parts.refresher.refresh('id', old, 'expired')).rejects.toMatchObject({ status: 503, retryAfter: 1 });
    await expect(parts.refresher.refresh('id', old, 'expired')).rejects.toMatchObject({ status: 503, retryAfter: 1 });
    expect(parts.refresher.isIdle('id')).toBe(false);
    expect(parts.told).toEqual([{ outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' }]);
    parts.clock.advance(1);
    server.next(answer('new'));
    await parts.refresher.refresh('id', old, 'expired');
    expect(parts.refresher.sizes.outages).toBe(0);
  });

  it('leaves no memory of a grant that was deleted meanwhile', async () => {
    server.next((socket, request) => {
      parts.refresher.forget('id');
      reset()(socket, request);
    });
    await expect(parts.refresher.refresh('id', old, 'expired')).rejects.toMatchObject({ status: 503 });
    expect(parts.refresher.sizes).toEqual({ flights: 0, unsaved: 0, outages: 0 });
  });
});
