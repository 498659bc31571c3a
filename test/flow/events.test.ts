import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { EventLog } from '../support/event-log.js';
import { FlakyStore, isGrantKey } from '../support/flaky-store.js';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { TroubledStore } from '../support/troubled-store.js';

const HOURS = 3600;

let flow: LoggedIn;
let events: EventLog;
beforeEach(() => {
  events = new EventLog('login', 'refresh', 'grant-lost', 'api');
});
afterEach(async () => {
  events.stop();
  await flow.world.close();
});

const named = (name: string) => events.events.filter((entry) => entry.name === name).map(({ event }) => event);
const durationMs = expect.any(Number);

test('login tells of each way in which a login can end', async () => {
  flow = await logInto();
  const { grantId } = await flow.whoami();
  const { world } = flow;
  await new Browser().visit(await world.begin(new Browser()));
  const browser = new Browser();
  await browser.visit(await world.begin(browser, { decline: true }));
  world.service.fail('token', { status: 503 });
  await world.logIn(new Browser());
  const strategy = 'oauth-app';
  expect(named('login')).toEqual([
    { strategy, outcome: 'success', grantId, scope: ['project', 'tm'], durationMs },
    { strategy, outcome: 'refused', reason: 'refused', durationMs },
    { strategy, outcome: 'declined', reason: 'declined', durationMs },
    { strategy, outcome: 'error', reason: 'ERR_SERVICE_UNAVAILABLE', durationMs },
  ]);
});

test('refresh tells what asked for it, and what came of it', async () => {
  const store = new TroubledStore();
  flow = await logInto({ strategy: { tokenStore: store } });
  const { grantId } = await flow.whoami();
  const usual = { strategy: 'oauth-app', grantId, durationMs };
  flow.clock.advance(2 * HOURS);
  await flow.projects();
  flow.world.service.expireAccessTokens();
  await flow.projects();
  flow.clock.advance(2 * HOURS);
  flow.world.service.fail('token', { status: 500 });
  await flow.projects();
  flow.clock.advance(31);
  store.fail('update');
  await flow.projects();
  store.recover();
  await flow.world.strategy.close();
  expect(named('refresh')).toEqual([
    { ...usual, trigger: 'expired', outcome: 'refreshed' },
    { ...usual, trigger: 'refused', outcome: 'refreshed' },
    { ...usual, trigger: 'expired', outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' },
    { ...usual, trigger: 'expired', outcome: 'unsaved' },
    { ...usual, trigger: 'expired', outcome: 'saved' },
  ]);
});

test('grant-lost has the id of the grant that ended, and the reason', async () => {
  flow = await logInto({ strategy: { tokenStore: memoryTokenStore() } });
  const { grantId } = await flow.whoami();
  flow.clock.advance(2 * HOURS);
  flow.world.service.revoke('1');
  await flow.projects();
  expect(named('grant-lost')).toEqual([{ strategy: 'oauth-app', grantId, reason: 'refused' }]);
});

test('api tells of each try of a call, without its query', async () => {
  flow = await logInto({ strategy: { tokenStore: memoryTokenStore() } });
  const { grantId } = await flow.whoami();
  const client = flow.world.strategy.client(grantId);
  const usual = { strategy: 'oauth-app', grantId, method: 'GET', durationMs };
  await client.projects({ limit: 1 });
  flow.world.service.expireAccessTokens();
  await client.projects();
  await client.get('/nowhere').catch(() => {});
  expect(named('api')).toEqual([
    { ...usual, path: '/projects', status: 200, attempts: 1 },
    { ...usual, path: '/projects', status: 401, attempts: 1, reason: 'ERR_API' },
    { ...usual, path: '/projects', status: 200, attempts: 2 },
    { ...usual, path: '/nowhere', status: 404, attempts: 1, reason: 'ERR_API' },
  ]);
});

test('none of them holds a token, a code or a secret', async () => {
  flow = await logInto();
  const { world } = flow;
  for (let round = 0; round < 3; round++) {
    flow.clock.advance(2 * HOURS);
    await flow.projects();
  }
  world.service.fail('token', {
    body: { error: 'invalid_client', error_description: String(flow.refreshTokens().at(-1)) },
  });
  flow.clock.advance(2 * HOURS);
  await flow.projects();
  const bodies = world.tokenRequests().map(({ body }) => body as Record<string, string>);
  const secrets = [
    ...bodies.flatMap(({ refresh_token, client_secret }) => [refresh_token, client_secret]),
    ...world.service.requests.flatMap(({ headers }) => headers.authorization?.slice('Bearer '.length)),
  ].filter((secret) => secret !== undefined);
  expect(secrets.length).toBeGreaterThan(8);
  const told = inspect(events.events, { depth: 10, showHidden: true });
  for (const secret of secrets) expect(told).not.toContain(secret);
});

test('login tells of one that could not be written into the session, and tells it once', async () => {
  const store = new FlakyStore();
  flow = await logInto({ session: { store } });
  const browser = new Browser();
  const callback = await flow.world.begin(browser);
  store.fail('set', (key) => !isGrantKey(key));
  expect((await browser.visit(callback)).status).toBe(503);
  store.recover();
  expect(named('login').slice(1)).toEqual([
    { strategy: 'oauth-app', outcome: 'error', reason: 'ERR_SESSION_STORE', durationMs },
  ]);
});
