import { beforeEach, describe, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import type { EventLog } from '../support/event-log.js';
import { another, clock, listen, loggedIn, projects, refreshTokens, whoami, world } from '../support/one-world.js';

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

  test('the grant has ended though the access token is still valid', async () => {
    await loggedIn({ service: { refreshTokenLifetime: HOURS } });
    clock.advance(HOURS - 1);
    expect((await projects()).status).toBe(200);
    clock.advance(1);
    expect((await projects()).status).toBe(302);
    expect([world.tokenRequests(), lost()]).toEqual([[], ['expired']]);
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
