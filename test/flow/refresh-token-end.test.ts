import { describe, expect } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { EventLog } from '../support/event-log.js';
import { test as base } from '../support/fixture.js';

const HOURS = 3_600;
const DAYS = 24 * HOURS;

/** `test`, with the reasons of the lost grants. */
const test = base.extend<{ readonly lost: () => unknown[] }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  lost: async ({}, use) => {
    const log = new EventLog('grant-lost');
    await use(() => log.events.map(({ event }) => Reflect.get(event, 'reason')));
    log.stop();
  },
});

describe('past the end of the refresh token', () => {
  for (const tokenStore of [undefined, memoryTokenStore()])
    test(`the grant has ended with no request (${tokenStore ? 'a token store' : 'beside the session'})`, async ({
      logInto,
      lost,
    }) => {
      const flow = await logInto({ service: { refreshTokenLifetime: 30 * DAYS }, strategy: { tokenStore } });
      flow.clock.advance(30 * DAYS);
      flow.world.service.fail('token', { status: 503 });
      expect((await flow.projects()).status).toBe(302);
      expect((await flow.whoami()).authorized).toBe(false);
      expect([flow.world.tokenRequests(), lost()]).toEqual([[], ['expired']]);
    });

  test('the grant has ended though the access token is still valid', async ({ logInto, lost }) => {
    const flow = await logInto({ service: { refreshTokenLifetime: HOURS } });
    flow.clock.advance(HOURS - 1);
    expect((await flow.projects()).status).toBe(200);
    flow.clock.advance(1);
    expect((await flow.projects()).status).toBe(302);
    expect([flow.world.tokenRequests(), lost()]).toEqual([[], ['expired']]);
  });

  test('the grant has ended while the token endpoint is left alone after a failure', async ({ logInto, lost }) => {
    const flow = await logInto({ service: { refreshTokenLifetime: 3 * HOURS } });
    flow.clock.advance(3 * HOURS - 1);
    flow.world.service.fail('token', { status: 503, headers: { 'retry-after': '30' } });
    expect((await flow.projects()).status).toBe(503);
    flow.clock.advance(1);
    expect((await flow.projects()).status).toBe(302);
    expect(lost()).toEqual(['expired']);
  });

  test('the pair that another process has refreshed meanwhile goes on', async ({ logInto, startWorld, lost }) => {
    const tokenStore = memoryTokenStore();
    const shared = { tokenStore, grantId: () => 'job' };
    const flow = await logInto({
      service: { refreshTokenLifetime: 3 * HOURS },
      strategy: { ...shared, cache: { ttl: 86_400 } },
    });
    const other = await startWorld({
      running: flow.world.service,
      strategy: { ...shared, clock: flow.clock.now },
    });
    await flow.projects();
    flow.clock.advance(2 * HOURS);
    await other.strategy.client('job').projects();
    flow.clock.advance(HOURS);
    expect((await flow.projects()).status).toBe(200);
    expect([flow.world.tokenRequests().length, lost()]).toEqual([1, []]);
  });
});

test('each refresh moves the end of a rotated refresh token', async ({ logInto, lost }) => {
  const flow = await logInto({ service: { refreshTokenLifetime: 3 * HOURS } });
  for (let round = 0; round < 3; round++) {
    flow.clock.advance(2 * HOURS);
    expect((await flow.projects()).status).toBe(200);
  }
  expect([flow.refreshTokens().length, lost()]).toEqual([3, []]);
});

test('a refresh token that never rotates keeps its end, and the emulator refuses it then', async ({
  logInto,
  lost,
}) => {
  const profile = { rotation: 'omit' as const };
  const flow = await logInto({ service: { refreshTokenLifetime: 3 * HOURS, profile } });
  flow.clock.advance(2 * HOURS);
  expect((await flow.projects()).status).toBe(200);
  const [refreshToken] = flow.refreshTokens();
  flow.clock.advance(HOURS);
  expect((await flow.projects()).status).toBe(302);
  expect([flow.refreshTokens().length, lost()]).toEqual([1, ['expired']]);
  const { clientID, clientSecret, authUrl } = flow.world.service.options;
  const fields = { grant_type: 'refresh_token', client_id: clientID, client_secret: clientSecret };
  const answer = await fetch(`${authUrl}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, refresh_token: refreshToken }),
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
});
