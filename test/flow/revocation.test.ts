import { beforeEach, describe, expect, test } from 'vitest';
import type { Profile } from '../../src/emulator/profiles.js';
import { memoryTokenStore } from '../../src/index.js';
import { pause } from '../../src/waiting.js';
import { another } from '../support/another.js';
import { logOutLocally } from '../support/application-parts.js';
import { Browser } from '../support/browser.js';
import { type EventLog, listen } from '../support/event-log.js';
import { fastForward, withoutPauses } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { HoldingAgent } from '../support/holding-agent.js';
import { browser, clock, loggedIn, logOut, open, projects, visit, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { type App, byUser } from '../support/world.js';

const HOURS = 3_600;
const revocationPath = '/oauth/revoke';

let grantEvents: EventLog;
beforeEach(() => {
  grantEvents = listen('grant');
});

/** Logs out by Passport's own method. */
const ownLogOut = (app: App) => app.post('/own-logout', logOutLocally);
const revocations = () => world.service.requests.filter(({ path }) => path === '/oauth/revoke');
const actions = () => grantEvents.values('grant', 'action');

/** The status of an API request with the access token. */
const apiStatus = async (token: string) =>
  (await fetch(`${world.service.baseUrl}/api/v2/projects`, { headers: { authorization: `Bearer ${token}` } })).status;

describe('after the local delete, the refresh token is revoked by', () => {
  const ways: Readonly<Record<string, (grantId: string) => Promise<unknown>>> = {
    'logout(strategy)': () => logOut(),
    'req.logout()': () => visit('/own-logout', { method: 'POST' }),
    deleteGrant: (grantId) => world.strategy.deleteGrant(grantId),
  };
  test.for(Object.entries(ways))('%s', async ([, end]) => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { revocationPath, tokenStore }, routes: ownLogOut });
    const { grantId } = await whoami();
    const token = await world.strategy.client(grantId).accessToken();
    await end(grantId);
    await until(() => expect(actions()).toEqual(['stored', 'deleted', 'revoked']));
    expect(grantEvents.events.at(-1)?.event).toEqual({ strategy: 'oauth-app', grantId, action: 'revoked' });
    const { clientID, clientSecret } = world.service.options;
    expect(revocations().map(({ body }) => body)).toEqual([
      {
        token: expect.stringMatching(/^1\.1\./),
        token_type_hint: 'refresh_token',
        client_id: clientID,
        client_secret: clientSecret,
      },
    ]);
    expect(await apiStatus(token)).toBe(401);
    expect((await projects()).status).toBe(302);
  });
});

const wires: readonly [string, Partial<Profile>][] = [
  ['form', { tokenRequest: 'form' }],
  ['basic', { tokenRequest: 'form', clientAuthentication: 'basic' }],
  ['basic with JSON', { clientAuthentication: 'basic-raw' }],
  ['at another path', { revocationPath: '/o/revoke_token/' }],
];
test.for(wires)('revokes as the token request is set: %s', async ([, profile]) => {
  await loggedIn({ service: { profile }, strategy: { revocationPath: profile.revocationPath ?? revocationPath } });
  await logOut();
  await until(() => expect(actions()).toEqual(['stored', 'deleted', 'revoked']));
});

test('revokes the access token of a grant that has no refresh token', async () => {
  await loggedIn({ strategy: { revocationPath, userProfile: async () => ({ id: '1' }) } });
  const other = new Browser();
  const callback = await world.begin(other);
  const body = { access_token: 'the-only-token', token_type: 'bearer', expires_in: 7_200 };
  world.service.fail('token', { status: 200, body });
  await other.visit(callback);
  await logOut(other);
  await until(() => expect(actions()).toContain('revoked'));
  const sent = { token: 'the-only-token', token_type_hint: 'access_token' };
  expect(revocations().map((request) => request.body)).toMatchObject([sent]);
});

describe('a revocation endpoint', threats(84), () => {
  test('that hangs delays no logout', async () => {
    await loggedIn({ strategy: { revocationPath } });
    world.service.fail('revoke', { hang: true, times: 4 });
    let isLoggedOut = false;
    const leave = async () => {
      expect((await logOut()).status).toBe(200);
      expect((await projects()).status).toBe(302);
      isLoggedOut = true;
      await world.strategy.close();
    };
    await fastForward(leave, () => isLoggedOut);
    await until(() => expect(actions()).toEqual(['stored', 'deleted', 'revocation-failed']));
  });

  test(
    'that hangs gets eight of 10,000 logouts at a time, behind the logins and refreshes of others',
    threats(102),
    async () => {
      const told: unknown[] = [];
      const warned = ({ name, message }: Error) => name.startsWith('MaxListeners') && told.push(message);
      process.on('warning', warned);
      const tokenStore = memoryTokenStore();
      await loggedIn({ strategy: { revocationPath, tokenStore, grantId: byUser, timeout: 120_000 } });
      world.service.fail('revoke', { hang: true, times: Infinity });
      const ids = Array.from({ length: 10_100 }, (_, index) => `user-${index}`);
      await Promise.all(ids.map((id) => world.strategy.importGrant(id, { refreshToken: id })));
      await world.strategy.deleteGrant(ids);
      await until(() => expect(revocations()).toHaveLength(8));
      const failed = () => actions().filter((action) => action === 'revocation-failed').length;
      expect(failed()).toBe(100);
      expect((await world.logIn(new Browser(), '2')).status).toBe(302);
      clock.advance(2 * HOURS);
      expect((await projects()).status).toBe(200);
      expect(revocations()).toHaveLength(8);
      await fastForward(() => world.strategy.close());
      expect([failed(), told]).toEqual([ids.length, []]);
      process.off('warning', warned);
    },
  );

  test('that is overloaded is asked again', async () => {
    await loggedIn({ strategy: { revocationPath } });
    world.service.fail('revoke', { status: 503 });
    world.service.fail('revoke', { reset: true });
    await logOut();
    const revoked = () => until(() => expect(actions()).toEqual(['stored', 'deleted', 'revoked']));
    await fastForward(revoked);
    expect(revocations()).toHaveLength(3);
  });

  test('that is down is asked a few times, and close() waits for that', async () => {
    await loggedIn({ strategy: { revocationPath } });
    world.service.fail('revoke', { status: 503, headers: { 'retry-after': '3600' }, times: Infinity });
    await logOut();
    await world.strategy.close();
    expect(actions()).toEqual(['stored', 'deleted', 'revocation-failed']);
    expect(revocations()).toHaveLength(4);
  });

  test.for([
    ['a refusal', { status: 400, body: { error: 'unsupported_token_type' } }, 'revocation-failed'],
    ['a refusal with status 200', { status: 200, body: { error: 'invalid_client' } }, 'revocation-failed'],
    ['a redirect', { status: 302, headers: { location: '/elsewhere' } }, 'revocation-failed'],
    ['too much', { status: 200, body: 'x'.repeat(1_100_000) }, 'revocation-failed'],
    ['that the token is none any more', { status: 400, body: { error: 'invalid_token' } }, 'revoked'],
    ['a page', { status: 200, body: '<p>Done</p>' }, 'revoked'],
    ['nothing', { status: 204 }, 'revoked'],
  ] as const)('that answers with %s', async ([name, fault, action]) => {
    await loggedIn({ strategy: { revocationPath } });
    world.service.fail('revoke', { ...fault, times: Infinity });
    expect((await logOut()).status).toBe(200);
    await world.strategy.close();
    expect(actions()).toEqual(['stored', 'deleted', action]);
    expect(revocations()).toHaveLength(name === 'too much' ? 4 : 1);
  });
});

describe('the new pair of a refresh that a logout overtakes is revoked', threats(84), () => {
  test.for(['the same process', 'another process'])('in %s', async (place) => {
    const [dispatcher, tokenStore] = [new HoldingAgent(), memoryTokenStore()];
    await loggedIn({ strategy: { revocationPath, dispatcher, tokenStore } });
    const { service } = world;
    const { grantId } = await whoami();
    const other = await another({ strategy: { revocationPath, tokenStore, dispatcher } });
    const refreshing = place === 'another process' ? other : world;
    clock.advance(2 * HOURS);
    const [release, revoke] = [dispatcher.hold(), dispatcher.hold('/oauth/revoke')];
    const late = refreshing.strategy
      .client(grantId)
      .accessToken()
      .catch((error: unknown) => error);
    await dispatcher.asked.opened;
    await world.strategy.deleteGrant(grantId);
    release();
    expect(await late).toMatchObject({ status: 401 });
    revoke();
    const tokens = () => revocations().map(({ body }) => Reflect.get(Object(body), 'token'));
    await until(() => expect(tokens()).toHaveLength(2));
    expect(tokens()).toEqual(
      expect.arrayContaining([expect.stringMatching(/^1\.1\./), expect.stringMatching(/^1\.2\./)]),
    );
    const { authUrl, clientID, clientSecret } = service.options;
    const fields = { grant_type: 'refresh_token', client_id: clientID, client_secret: clientSecret };
    for (const refresh_token of tokens()) {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ ...fields, refresh_token });
      expect((await fetch(`${authUrl}/oauth/token`, { method: 'POST', headers, body })).status).toBe(400);
    }
  });

  test('that the store could not save yet', async () => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    clock.advance(2 * HOURS);
    tokenStore.fail('update');
    expect((await projects()).status).toBe(200);
    tokenStore.recover();
    await logOut();
    await until(() => expect(actions()).toContain('revoked'));
    expect(revocations().map(({ body }) => body)).toMatchObject([{ token: expect.stringMatching(/^1\.2\./) }]);
  });

  test('whose save waits behind a slow deletion', async () => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await whoami();
    clock.advance(2 * HOURS);
    const slow = gate();
    tokenStore.before = (method) => (method === 'delete' ? slow.opened : undefined);
    const token = await withoutPauses(async () => {
      const deletion = world.strategy.deleteGrant(grantId);
      // The store still has the grant. The new pair is used from memory once its save has waited too long.
      const used = await world.strategy.client(grantId).accessToken();
      slow.open();
      await deletion;
      return used;
    }, world.service.authUrl);
    await until(() => expect(actions()).toEqual(['stored', 'deleted', 'revoked']));
    expect(revocations().map(({ body }) => body)).toMatchObject([{ token: expect.stringMatching(/^1\.2\./) }]);
    expect(await apiStatus(token)).toBe(401);
  });
});

test('a logout revokes the login that it ends, and not one before it whose pair this process could not save', async () => {
  const tokenStore = new TroubledStore();
  const byUser = { revocationPath, tokenStore, grantId: () => '1' };
  await loggedIn({ strategy: byUser });
  clock.advance(2 * HOURS);
  tokenStore.fail('update');
  expect((await projects()).status).toBe(200);
  const other = await another({ strategy: byUser });
  await other.logIn(new Browser());
  const token = await other.strategy.client('1').accessToken();
  await world.strategy.deleteGrant('1');
  await until(() => expect(actions()).toContain('revoked'));
  expect(revocations()).toHaveLength(1);
  expect(await apiStatus(token)).toBe(401);
});

describe('a logout that the store has reported as failed', () => {
  /** Logs in over a store that can fail. */
  async function loggedInOverStore() {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await whoami();
    return { tokenStore, grantId };
  }

  test('has its tokens revoked if the grant is gone all the same, though the next logout finds none', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    const remove = tokenStore.inner.delete;
    tokenStore.inner.delete = async (id, version) => {
      await remove.call(tokenStore.inner, id, version);
      throw new Error('The answer was lost');
    };
    await expect(world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await world.strategy.deleteGrant(grantId);
    await until(() => expect(actions()).toEqual(['stored', 'revoked']));
    expect(revocations()).toHaveLength(1);
  });

  test('has the newest pair revoked, where another process has refreshed the one that this process has seen last', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    const other = await another({ strategy: { revocationPath, tokenStore } });
    const client = other.strategy.client(grantId);
    const newest = await client.accessToken({ refused: await client.accessToken() });
    const remove = tokenStore.inner.delete;
    tokenStore.inner.delete = async (id, version) => {
      await remove.call(tokenStore.inner, id, version);
      if (!(await tokenStore.inner.get(id))) throw new Error('The answer was lost');
    };
    await expect(world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await until(() => expect(actions()).toContain('revoked'));
    expect(await apiStatus(newest)).toBe(401);
  });

  test('has its tokens revoked when a slow store has deleted the grant after all', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    const slow = gate();
    tokenStore.before = (method) => (method === 'delete' ? slow.opened : undefined);
    const deletion = fastForward(() => world.strategy.deleteGrant(grantId));
    await expect(deletion).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE_TIMEOUT' });
    expect(actions()).toEqual(['stored']);
    slow.open();
    await until(() => expect(actions()).toEqual(['stored', 'deleted', 'revoked']));
    expect(revocations()).toHaveLength(1);
  });

  test('has its tokens revoked when a store that still had the grant deletes it later than anybody waits', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    const slow = gate();
    tokenStore.before = (method) => (method === 'delete' ? slow.opened : undefined);
    await fastForward(async () => {
      await expect(world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE_TIMEOUT' });
      await pause(20_000);
    });
    expect(actions()).toEqual(['stored']);
    slow.open();
    await until(() => expect(actions()).toEqual(['stored', 'revoked']));
    expect(revocations()).toHaveLength(1);
  });

  test('has its tokens revoked when the store deletes the grant after the connection has failed', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    let deleted = '';
    tokenStore.before = (method, id) => {
      if (method !== 'delete') return;
      deleted = id;
      throw new Error('The connection was reset');
    };
    const looks = () => tokenStore.calls.filter((call) => call === 'get').length;
    const looksBefore = looks();
    await expect(world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    // It has looked at once, and when the store had answered.
    await until(() => expect(looks()).toBeGreaterThanOrEqual(looksBefore + 2));
    await tokenStore.inner.delete(deleted);
    await until(() => expect(actions()).toEqual(['stored', 'revoked']));
  });

  test('is told as a failed revocation if the store does not say whether the grant is gone', async () => {
    const { tokenStore, grantId } = await loggedInOverStore();
    tokenStore.fail('delete', 'get');
    await expect(world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await world.strategy.close();
    expect([revocations(), actions()]).toEqual([[], ['stored', 'revocation-failed']]);
  });
});

describe('nothing is revoked', () => {
  test('when the grant cannot be deleted', async () => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    tokenStore.fail('delete');
    expect((await logOut()).status).toBe(503);
    await world.strategy.close();
    expect([revocations(), actions()]).toEqual([[], ['stored']]);
  });

  test('when a grant that a login has replaced cannot be deleted, whose lock is given back', async () => {
    const tokenStore = new TroubledStore();
    let held = 0;
    const lock = tokenStore.inner.lock.bind(tokenStore.inner);
    tokenStore.inner.lock = async (id, work) => {
      held++;
      try {
        return await lock(id, work);
      } finally {
        held--;
      }
    };
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    tokenStore.fail('delete');
    await visit(await world.begin(browser));
    await until(() => expect([tokenStore.calls.includes('delete'), held]).toEqual([true, 0]));
    expect([revocations(), actions()]).toEqual([[], ['stored', 'stored']]);
  });

  test('when another login takes the place of a grant, even during a refresh', async () => {
    const [dispatcher, tokenStore] = [new HoldingAgent(), memoryTokenStore()];
    await loggedIn({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await whoami();
    const { service } = world;
    const other = await another({ strategy: { revocationPath, tokenStore, dispatcher } });
    service.expireAccessTokens();
    const release = dispatcher.hold();
    const refreshed = other.strategy.client(grantId).projects();
    await dispatcher.asked.opened;
    await visit(await world.begin(browser));
    expect(actions()).toEqual(['stored', 'stored']);
    release();
    await refreshed;
    await until(() => expect(actions()).toEqual(['stored', 'stored', 'deleted']));
    expect((await projects()).status).toBe(200);
    await world.strategy.close();
    expect(revocations()).toEqual([]);
  });

  test('when another login takes the place of a grant, by a process with a key that this one has not yet', async () => {
    const [dispatcher, tokenStore] = [new HoldingAgent(), memoryTokenStore()];
    const [before, after] = ['0'.repeat(32), '1'.repeat(32)] as const;
    const options = { revocationPath, tokenStore, grantId: () => '1' };
    await loggedIn({ strategy: { ...options, dispatcher, encryptionKeys: [before] } });
    const other = await another({ strategy: { ...options, encryptionKeys: [after, before] } });
    clock.advance(2 * HOURS);
    const release = dispatcher.hold();
    const refreshed = world.strategy.client('1').accessToken();
    await dispatcher.asked.opened;
    await other.logIn(new Browser());
    release();
    await refreshed.catch(() => undefined);
    await world.strategy.close();
    expect(actions()).not.toContain('revoked');
    expect(revocations()).toEqual([]);
    expect(await other.strategy.client('1').accessToken()).toBeDefined();
  });

  test('when the session expires, or the service has ended the grant', async () => {
    await loggedIn({ session: { cookie: { maxAge: 60_000 } }, strategy: { revocationPath } });
    world.store.clear();
    expect((await projects()).status).toBe(302);
    await world.strategy.close();
    expect(revocations()).toEqual([]);
    await loggedIn({ strategy: { revocationPath } });
    clock.advance(2 * HOURS);
    world.service.revoke('1');
    expect((await withoutPauses(projects, world.service.authUrl)).status).toBe(302);
    await world.strategy.close();
    expect(revocations()).toEqual([]);
    expect(actions()).toEqual(['stored', 'stored']);
  });

  test('without the option', async () => {
    await loggedIn();
    await logOut();
    await world.strategy.close();
    expect([revocations(), actions()]).toEqual([[], ['stored', 'deleted']]);
  });
});

test('an import is told as such, and one that replaces nothing is not told', async () => {
  const { strategy } = await open({ strategy: { revocationPath, tokenStore: memoryTokenStore() } });
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresAt: Date.now() + 7_200_000 };
  await strategy.importGrant('job', tokens);
  await strategy.importGrant('job', tokens, { replace: false });
  await strategy.deleteGrant('unknown');
  expect(grantEvents.events.map(({ event }) => event)).toEqual([
    { strategy: 'oauth-app', grantId: 'job', action: 'imported' },
  ]);
});
