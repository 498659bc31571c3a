import { inspect } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { type EventLog, listen } from '../support/event-log.js';
import { withoutPauses } from '../support/fast-forward.js';
import { FlakyStore, isGrantKey } from '../support/flaky-store.js';
import { clock, loggedIn, projects, refreshTokens, whoami, world } from '../support/one-world.js';
import { TroubledStore } from '../support/troubled-store.js';

const HOURS = 3600;

let events: EventLog;
beforeEach(() => {
  events = listen('login', 'refresh', 'grant-lost', 'api');
});

const named = (name: string) => events.events.filter((entry) => entry.name === name).map(({ event }) => event);
const durationMs = expect.any(Number);

test('login tells of each way in which a login can end', async () => {
  await loggedIn();
  const { grantId } = await whoami();
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
  await loggedIn({ strategy: { tokenStore: store } });
  const { grantId } = await whoami();
  const usual = { strategy: 'oauth-app', grantId, durationMs };
  clock.advance(2 * HOURS);
  await projects();
  world.service.expireAccessTokens();
  await projects();
  clock.advance(2 * HOURS);
  world.service.fail('token', { status: 500 });
  await projects();
  clock.advance(31);
  store.fail('update');
  await projects();
  store.recover();
  await world.strategy.close();
  expect(named('refresh')).toEqual([
    { ...usual, trigger: 'expired', outcome: 'refreshed' },
    { ...usual, trigger: 'refused', outcome: 'refreshed' },
    { ...usual, trigger: 'expired', outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' },
    { ...usual, trigger: 'expired', outcome: 'unsaved' },
    { ...usual, trigger: 'expired', outcome: 'saved' },
  ]);
});

test('grant-lost has the id of the grant that ended, and the reason', async () => {
  await loggedIn({ strategy: { tokenStore: memoryTokenStore() } });
  const { grantId } = await whoami();
  clock.advance(2 * HOURS);
  world.service.revoke('1');
  await withoutPauses(projects, world.service.authUrl);
  expect(named('grant-lost')).toEqual([{ strategy: 'oauth-app', grantId, reason: 'refused' }]);
});

test('api tells of each try of a call, without its query', async () => {
  await loggedIn({ strategy: { tokenStore: memoryTokenStore() } });
  const { grantId } = await whoami();
  const client = world.strategy.client(grantId);
  const { origin } = new URL(world.service.baseUrl);
  const usual = { strategy: 'oauth-app', grantId, method: 'GET', origin, durationMs };
  await client.projects({ limit: 1 });
  world.service.expireAccessTokens();
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
  await loggedIn();
  for (let round = 0; round < 3; round++) {
    clock.advance(2 * HOURS);
    await projects();
  }
  world.service.fail('token', { body: { error: 'invalid_client', error_description: String(refreshTokens().at(-1)) } });
  clock.advance(2 * HOURS);
  await projects();
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
  await loggedIn({ session: { store } });
  const browser = new Browser();
  const callback = await world.begin(browser);
  store.fail('set', (key) => !isGrantKey(key));
  expect((await browser.visit(callback)).status).toBe(503);
  store.recover();
  expect(named('login').slice(1)).toEqual([
    { strategy: 'oauth-app', outcome: 'error', reason: 'ERR_SESSION_STORE', durationMs },
  ]);
});
