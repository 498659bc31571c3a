import { beforeEach, describe, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import { type EventLog, listen } from '../support/event-log.js';
import { clock, loggedIn, projects, refreshTokens, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const HOURS = 3_600;
const DAYS = 24 * HOURS;

let log: EventLog;
beforeEach(() => {
  log = listen('grant-lost');
});
const lost = () => log.values('grant-lost', 'reason');

describe('past the end of the refresh token', () => {
  for (const tokenStore of [undefined, memoryTokenStore()])
    test(`the grant has ended with no request (${tokenStore ? 'a token store' : 'beside the session'})`, async () => {
      await loggedIn({ service: { refreshTokenLifetime: 30 * DAYS }, strategy: { tokenStore } });
      clock.advance(30 * DAYS);
      world.service.fail('token', { status: 503 });
      expect((await projects()).status).toBe(302);
      expect((await whoami()).authorized).toBe(false);
      expect([world.tokenRequests(), lost()]).toEqual([[], ['expired']]);
    });

  test('the access token serves to its own end, and the grant ends with it', async () => {
    await loggedIn({ service: { refreshTokenLifetime: HOURS } });
    for (const seconds of [HOURS, HOURS - 1]) {
      clock.advance(seconds);
      expect((await projects()).status).toBe(200);
    }
    clock.advance(1);
    expect((await projects()).status).toBe(302);
    expect([world.tokenRequests(), lost()]).toEqual([[], ['expired']]);
  });

  test.for([
    ['goes on where the service still accepts it', true],
    ['ends where the service refuses it', false],
  ] as const)('the pair of another process, whose clock may differ, %s', async ([, isAlive]) => {
    const shared = { tokenStore: memoryTokenStore(), grantId: () => 'job' };
    await loggedIn({ service: { refreshTokenLifetime: DAYS }, strategy: shared });
    const fast = () => clock.now() + 2 * DAYS * 1000;
    const other = await another({ strategy: { ...shared, clock: fast } });
    if (!isAlive) world.service.revoke('1');
    const outcome = await other.strategy
      .client('job')
      .projects()
      .then(
        () => 200,
        ({ status }) => status,
      );
    expect([outcome, lost(), refreshTokens().length]).toEqual(isAlive ? [200, [], 1] : [401, ['expired'], 1]);
  });

  test('the grant has ended while the token endpoint is left alone after a failure', async () => {
    await loggedIn({ service: { refreshTokenLifetime: 3 * HOURS } });
    clock.advance(3 * HOURS - 1);
    world.service.fail('token', { status: 503, headers: { 'retry-after': '30' } });
    expect((await projects()).status).toBe(503);
    clock.advance(1);
    expect((await projects()).status).toBe(302);
    expect(lost()).toEqual(['expired']);
  });

  test('the pair that another process has refreshed meanwhile goes on', async () => {
    const tokenStore = memoryTokenStore();
    const shared = { tokenStore, grantId: () => 'job' };
    await loggedIn({ service: { refreshTokenLifetime: 3 * HOURS }, strategy: { ...shared, cache: { ttl: 86_400 } } });
    const other = await another({ strategy: shared });
    await projects();
    clock.advance(2 * HOURS);
    await other.strategy.client('job').projects();
    clock.advance(HOURS);
    expect((await projects()).status).toBe(200);
    expect([world.tokenRequests().length, lost()]).toEqual([1, []]);
  });
});

test(
  'an active user stays logged in, though the refresh token lives shorter than the access token',
  threats(107),
  async () => {
    const refreshed = listen('refresh');
    await loggedIn({ service: { accessTokenLifetime: DAYS, refreshTokenLifetime: HOURS / 2 } });
    for (let round = 1; round <= 5; round++) {
      clock.advance(HOURS / 2 - 200);
      expect((await projects()).status).toBe(200);
      await until(() => expect(refreshed.values('refresh', 'outcome')).toHaveLength(round));
    }
    // The service fails in the last moment: the access token goes on to serve.
    clock.advance(HOURS / 2 - 10);
    world.service.fail('token', { status: 503 });
    expect((await projects()).status).toBe(200);
    expect([refreshTokens().length, lost()]).toEqual([6, []]);
  },
);

test('each refresh moves the end of a rotated refresh token', async () => {
  await loggedIn({ service: { refreshTokenLifetime: 3 * HOURS } });
  for (let round = 0; round < 3; round++) {
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(200);
  }
  expect([refreshTokens().length, lost()]).toEqual([3, []]);
});

test('a refresh token that never rotates keeps its end, and the emulator refuses it then', async () => {
  const profile = { rotation: 'omit' as const };
  await loggedIn({ service: { refreshTokenLifetime: 3 * HOURS, profile } });
  clock.advance(2 * HOURS);
  expect((await projects()).status).toBe(200);
  const [refreshToken] = refreshTokens();
  clock.advance(HOURS);
  expect((await projects()).status).toBe(200);
  clock.advance(HOURS);
  expect((await projects()).status).toBe(302);
  expect([refreshTokens().length, lost()]).toEqual([1, ['expired']]);
  const { clientID, clientSecret, authUrl } = world.service.options;
  const fields = { grant_type: 'refresh_token', client_id: clientID, client_secret: clientSecret };
  const answer = await fetch(`${authUrl}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, refresh_token: refreshToken }),
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
});
