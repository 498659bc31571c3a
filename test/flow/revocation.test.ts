import { describe, expect } from 'vitest';
import type { Profile } from '../../src/emulator/profiles.js';
import { memoryTokenStore } from '../../src/index.js';
import { gate } from '../refresh/fixture.js';
import { EventLog } from '../support/event-log.js';
import { fastForward } from '../support/fast-forward.js';
import { test as base } from '../support/fixture.js';
import { HoldingAgent } from '../support/holding-agent.js';
import type { LoggedIn } from '../support/logged-in.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { type App, sendJson, type World } from '../support/world.js';

const HOURS = 3_600;
const revocationPath = '/oauth/revoke';

/** `test`, with the events of the channel `grant`. */
const test = base.extend<{ readonly grantEvents: EventLog }>({
  grantEvents: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
    async ({}, use) => {
      const log = new EventLog('grant');
      await use(log);
      log.stop();
    },
    { auto: true },
  ],
});

/** Logs out by Passport's own method. */
const ownLogOut = (app: App) =>
  app.post('/own-logout', (req, res, next) => req.logout((error) => (error ? next(error) : sendJson(res, {}))));
const revocations = ({ service }: World) => service.requests.filter(({ path }) => path === '/oauth/revoke');
const logOut = ({ world, browser }: LoggedIn, path = '/logout') =>
  browser.visit(`${world.url}${path}`, { method: 'POST' });
const actions = (log: EventLog) => log.values('grant', 'action');

/** The status of an API request with the access token. */
const apiStatus = async ({ world }: LoggedIn, token: string) =>
  (await fetch(`${world.service.baseUrl}/api/v2/projects`, { headers: { authorization: `Bearer ${token}` } })).status;

describe('after the local delete, the refresh token is revoked by', () => {
  const ways: Readonly<Record<string, (flow: LoggedIn, grantId: string) => Promise<unknown>>> = {
    'logout(strategy)': (flow) => logOut(flow),
    'req.logout()': (flow) => logOut(flow, '/own-logout'),
    deleteGrant: ({ world }, grantId) => world.strategy.deleteGrant(grantId),
  };
  test.for(Object.entries(ways))('%s', async ([_name, end], { logInto, grantEvents }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore }, routes: ownLogOut });
    const { grantId } = await flow.whoami();
    const token = await flow.world.strategy.client(grantId).accessToken();
    await end(flow, grantId);
    await until(() => expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revoked']));
    expect(grantEvents.events.at(-1)?.event).toEqual({ strategy: 'oauth-app', grantId, action: 'revoked' });
    const { clientID, clientSecret } = flow.world.service.options;
    expect(revocations(flow.world).map(({ body }) => body)).toEqual([
      {
        token: expect.stringMatching(/^1\.1\./),
        token_type_hint: 'refresh_token',
        client_id: clientID,
        client_secret: clientSecret,
      },
    ]);
    expect(await apiStatus(flow, token)).toBe(401);
    expect((await flow.projects()).status).toBe(302);
  });
});

const wires: readonly [string, Partial<Profile>][] = [
  ['form', { tokenRequest: 'form' }],
  ['basic', { tokenRequest: 'form', clientAuthentication: 'basic' }],
  ['basic with JSON', { clientAuthentication: 'basic-raw' }],
  ['at another path', { revocationPath: '/o/revoke_token/' }],
];
test.for(wires)('revokes as the token request is set: %s', async ([_name, profile], { logInto, grantEvents }) => {
  const flow = await logInto({
    service: { profile },
    strategy: { revocationPath: profile.revocationPath ?? revocationPath },
  });
  await logOut(flow);
  await until(() => expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revoked']));
});

test('revokes the access token of a grant that has no refresh token', async ({ logInto, grantEvents, browser }) => {
  const { world, ...flow } = await logInto({ strategy: { revocationPath, userProfile: async () => ({ id: '1' }) } });
  const callback = await world.begin(browser);
  const body = { access_token: 'the-only-token', token_type: 'bearer', expires_in: 7_200 };
  world.service.fail('token', { status: 200, body });
  await browser.visit(callback);
  await logOut({ ...flow, world, browser });
  await until(() => expect(actions(grantEvents)).toContain('revoked'));
  const sent = { token: 'the-only-token', token_type_hint: 'access_token' };
  expect(revocations(world).map((request) => request.body)).toMatchObject([sent]);
});

describe('a revocation endpoint', { meta: { threats: [84] } }, () => {
  test('that hangs delays no logout', async ({ logInto, grantEvents }) => {
    const flow = await logInto({ strategy: { revocationPath, timeout: 100 } });
    flow.world.service.fail('revoke', { hang: true, times: 4 });
    expect((await logOut(flow)).status).toBe(200);
    expect((await flow.projects()).status).toBe(302);
    await flow.world.strategy.close();
    expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revocation-failed']);
  });

  test('that is overloaded is asked again', async ({ logInto, grantEvents }) => {
    const flow = await logInto({ strategy: { revocationPath } });
    flow.world.service.fail('revoke', { status: 503 });
    flow.world.service.fail('revoke', { reset: true });
    await logOut(flow);
    const revoked = () => until(() => expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revoked']));
    await fastForward(revoked);
    expect(revocations(flow.world)).toHaveLength(3);
  });

  test('that is down is asked a few times, and close() waits for that', async ({ logInto, grantEvents }) => {
    const flow = await logInto({ strategy: { revocationPath } });
    flow.world.service.fail('revoke', { status: 503, headers: { 'retry-after': '3600' }, times: Infinity });
    await logOut(flow);
    await flow.world.strategy.close();
    expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revocation-failed']);
    expect(revocations(flow.world)).toHaveLength(4);
  });

  test.for([
    ['a refusal', { status: 400, body: { error: 'unsupported_token_type' } }, 'revocation-failed'],
    ['a refusal with status 200', { status: 200, body: { error: 'invalid_client' } }, 'revocation-failed'],
    ['a redirect', { status: 302, headers: { location: '/elsewhere' } }, 'revocation-failed'],
    ['too much', { status: 200, body: 'x'.repeat(70_000) }, 'revocation-failed'],
    ['that the token is none any more', { status: 400, body: { error: 'invalid_token' } }, 'revoked'],
    ['a page', { status: 200, body: '<p>Done</p>' }, 'revoked'],
    ['nothing', { status: 204 }, 'revoked'],
  ] as const)('that answers with %s', async ([_name, fault, action], { logInto, grantEvents }) => {
    const flow = await logInto({ strategy: { revocationPath } });
    flow.world.service.fail('revoke', { ...fault, times: Infinity });
    expect((await logOut(flow)).status).toBe(200);
    await flow.world.strategy.close();
    expect(actions(grantEvents)).toEqual(['stored', 'deleted', action]);
    expect(revocations(flow.world)).toHaveLength(_name === 'too much' ? 4 : 1);
  });
});

describe('the new pair of a refresh that a logout overtakes is revoked', { meta: { threats: [84] } }, () => {
  test.for(['the same process', 'another process'])('in %s', async (place, { logInto, startWorld }) => {
    const [dispatcher, tokenStore] = [new HoldingAgent(), memoryTokenStore()];
    const flow = await logInto({ strategy: { revocationPath, dispatcher, tokenStore } });
    const { service } = flow.world;
    const { grantId } = await flow.whoami();
    const other = await startWorld({
      running: service,
      strategy: { revocationPath, tokenStore, dispatcher, clock: flow.clock.now },
    });
    const refreshing = place === 'another process' ? other : flow.world;
    flow.clock.advance(2 * HOURS);
    const [release, revoke] = [dispatcher.hold(), dispatcher.hold('/oauth/revoke')];
    const late = refreshing.strategy
      .client(grantId)
      .accessToken()
      .catch((error: unknown) => error);
    await dispatcher.asked.opened;
    await flow.world.strategy.deleteGrant(grantId);
    release();
    expect(await late).toMatchObject({ status: 401 });
    revoke();
    const tokens = () => revocations(flow.world).map(({ body }) => Reflect.get(Object(body), 'token'));
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

  test('that the store could not save yet', async ({ logInto, grantEvents }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    flow.clock.advance(2 * HOURS);
    tokenStore.fail('update');
    expect((await flow.projects()).status).toBe(200);
    tokenStore.recover();
    await logOut(flow);
    await until(() => expect(actions(grantEvents)).toContain('revoked'));
    expect(revocations(flow.world).map(({ body }) => body)).toMatchObject([
      { token: expect.stringMatching(/^1\.2\./) },
    ]);
  });
});

describe('a logout that the store has reported as failed', () => {
  test('has its tokens revoked if the grant is gone all the same, though the next logout finds none', async ({
    logInto,
    grantEvents,
  }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await flow.whoami();
    const remove = tokenStore.inner.delete;
    tokenStore.inner.delete = async (id, version) => {
      await remove.call(tokenStore.inner, id, version);
      throw new Error('The answer was lost');
    };
    await expect(flow.world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await flow.world.strategy.deleteGrant(grantId);
    await until(() => expect(actions(grantEvents)).toEqual(['stored', 'revoked']));
    expect(revocations(flow.world)).toHaveLength(1);
  });

  test('has the newest pair revoked, where another process has refreshed the one that this process has seen last', async ({
    logInto,
    startWorld,
    grantEvents,
  }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await flow.whoami();
    const running = flow.world.service;
    const other = await startWorld({ running, strategy: { revocationPath, tokenStore, clock: flow.clock.now } });
    const client = other.strategy.client(grantId);
    const newest = await client.accessToken({ refused: await client.accessToken() });
    const remove = tokenStore.inner.delete;
    tokenStore.inner.delete = async (id, version) => {
      await remove.call(tokenStore.inner, id, version);
      if (!(await tokenStore.inner.get(id))) throw new Error('The answer was lost');
    };
    await expect(flow.world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await until(() => expect(actions(grantEvents)).toContain('revoked'));
    expect(await apiStatus(flow, newest)).toBe(401);
  });

  test('has its tokens revoked when a slow store has deleted the grant after all', async ({ logInto, grantEvents }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await flow.whoami();
    const slow = gate();
    tokenStore.before = (method) => (method === 'delete' ? slow.opened : undefined);
    const deletion = fastForward(() => flow.world.strategy.deleteGrant(grantId));
    await expect(deletion).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE_TIMEOUT' });
    expect(actions(grantEvents)).toEqual(['stored']);
    slow.open();
    await until(() => expect(actions(grantEvents)).toEqual(['stored', 'deleted', 'revoked']));
    expect(revocations(flow.world)).toHaveLength(1);
  });

  test('is told as a failed revocation if the store does not say whether the grant is gone', async ({
    logInto,
    grantEvents,
  }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await flow.whoami();
    tokenStore.fail('delete', 'get');
    await expect(flow.world.strategy.deleteGrant(grantId)).rejects.toMatchObject({ status: 503 });
    await flow.world.strategy.close();
    expect([revocations(flow.world), actions(grantEvents)]).toEqual([[], ['stored', 'revocation-failed']]);
  });
});

describe('nothing is revoked', () => {
  test('when the grant cannot be deleted', async ({ logInto, grantEvents }) => {
    const tokenStore = new TroubledStore();
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    tokenStore.fail('delete');
    expect((await logOut(flow)).status).toBe(503);
    await flow.world.strategy.close();
    expect([revocations(flow.world), actions(grantEvents)]).toEqual([[], ['stored']]);
  });

  test('when a grant that a login has replaced cannot be deleted, whose lock is given back', async ({
    logInto,
    grantEvents,
  }) => {
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
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    tokenStore.fail('delete');
    await flow.browser.visit(await flow.world.begin(flow.browser));
    await until(() => expect([tokenStore.calls.includes('delete'), held]).toEqual([true, 0]));
    expect([revocations(flow.world), actions(grantEvents)]).toEqual([[], ['stored', 'stored']]);
  });

  test('when another login takes the place of a grant, even during a refresh', async ({
    logInto,
    startWorld,
    grantEvents,
  }) => {
    const [dispatcher, tokenStore] = [new HoldingAgent(), memoryTokenStore()];
    const flow = await logInto({ strategy: { revocationPath, tokenStore } });
    const { grantId } = await flow.whoami();
    const { service } = flow.world;
    const other = await startWorld({
      running: service,
      strategy: { revocationPath, tokenStore, dispatcher, clock: flow.clock.now },
    });
    service.expireAccessTokens();
    const release = dispatcher.hold();
    const refreshed = other.strategy.client(grantId).projects();
    await dispatcher.asked.opened;
    await flow.browser.visit(await flow.world.begin(flow.browser));
    expect(actions(grantEvents)).toEqual(['stored', 'stored']);
    release();
    await refreshed;
    await until(() => expect(actions(grantEvents)).toEqual(['stored', 'stored', 'deleted']));
    expect((await flow.projects()).status).toBe(200);
    await flow.world.strategy.close();
    expect(revocations(flow.world)).toEqual([]);
  });

  test('when the session expires, or the service has ended the grant', async ({ logInto, grantEvents }) => {
    const flow = await logInto({ session: { cookie: { maxAge: 60_000 } }, strategy: { revocationPath } });
    flow.world.store.clear();
    expect((await flow.projects()).status).toBe(302);
    const ended = await logInto({ strategy: { revocationPath } });
    ended.clock.advance(2 * HOURS);
    ended.world.service.revoke('1');
    expect((await ended.projects()).status).toBe(302);
    for (const { world } of [flow, ended]) {
      await world.strategy.close();
      expect(revocations(world)).toEqual([]);
    }
    expect(actions(grantEvents)).toEqual(['stored', 'stored']);
  });

  test('without the option', async ({ logInto, grantEvents }) => {
    const flow = await logInto();
    await logOut(flow);
    await flow.world.strategy.close();
    expect([revocations(flow.world), actions(grantEvents)]).toEqual([[], ['stored', 'deleted']]);
  });
});

test('an import is told as such, and one that replaces nothing is not told', async ({ startWorld, grantEvents }) => {
  const { strategy } = await startWorld({ strategy: { revocationPath, tokenStore: memoryTokenStore() } });
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresAt: Date.now() + 7_200_000 };
  await strategy.importGrant('job', tokens);
  await strategy.importGrant('job', tokens, { replace: false });
  await strategy.deleteGrant('unknown');
  expect(grantEvents.events.map(({ event }) => event)).toEqual([
    { strategy: 'oauth-app', grantId: 'job', action: 'imported' },
  ]);
});
