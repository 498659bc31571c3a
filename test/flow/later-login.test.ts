import { memoryTokenStore, type StrategyOptions } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { hold } from '../support/hold.js';
import {
  browser,
  clock,
  loggedIn,
  logIn,
  projects,
  refreshTokens,
  visit,
  whoami,
  world,
} from '../support/one-world.js';
import { threats } from '../support/threats.js';

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwtOf = (sub: string) => `${part({ alg: 'none' })}.${part({ sub })}.`;
const byUser: Partial<StrategyOptions> = {
  tokenStore: memoryTokenStore(),
  grantId: (_req, user) => Reflect.get(Object(user), 'id'),
};
const sampleUser = async () => ({ id: '1' });

describe('a later login whose response has no refresh token', threats(90), () => {
  const kept: [what: string, accessToken: string, strategy: Partial<StrategyOptions>][] = [
    ['the session refers to', jwtOf('1'), {}],
    ['the application names by the user', jwtOf('1'), byUser],
    ['a service with opaque tokens has, by the id of userProfile', 'opaque', { userProfile: sampleUser }],
  ];
  test.for(kept)('keeps the refresh token of the grant that %s', async ([, accessToken, strategy]) => {
    const isOpaque = accessToken === 'opaque';
    await loggedIn({ strategy, ...(isOpaque ? { service: { profile: { accessToken: 'opaque' } } } : {}) });
    world.service.fail('token', { body: { access_token: accessToken, token_type: 'bearer', expires_in: 3600 } });
    expect((await logIn()).status).toBe(302);
    clock.advance(3_600);
    expect((await projects()).status).toBe(200);
    expect((await whoami()).authorized).toBe(true);
  });

  test('keeps the end of the refresh token that it keeps', async () => {
    const strategy = { ...byUser, tokenStore: memoryTokenStore() };
    await loggedIn({ service: { refreshTokenLifetime: 36_000 }, strategy });
    const before = await world.strategy.grant('1');
    clock.advance(3_600);
    world.service.fail('token', { body: { access_token: jwtOf('1'), token_type: 'bearer', expires_in: 3600 } });
    await world.logIn(new Browser());
    const { refreshTokenExpiresAt } = before ?? {};
    expect(refreshTokenExpiresAt).toBeDefined();
    expect(await world.strategy.grant('1')).toMatchObject({ createdAt: clock.now(), refreshTokenExpiresAt });
  });

  test('keeps none of another user', async () => {
    await loggedIn();
    world.service.fail('token', { body: { access_token: jwtOf('2'), token_type: 'bearer', expires_in: 3600 } });
    await logIn('2');
    clock.advance(3_600);
    world.service.requests.length = 0;
    expect((await whoami()).authorized).toBe(false);
    expect(world.tokenRequests()).toEqual([]);
  });

  test('keeps none that has ended: the login would end with it', async () => {
    await loggedIn({
      service: { refreshTokenLifetime: 3_600 },
      strategy: { ...byUser, tokenStore: memoryTokenStore() },
    });
    clock.advance(3_600);
    world.service.fail('token', { body: { access_token: jwtOf('1'), token_type: 'bearer', expires_in: 3600 } });
    const visitor = new Browser();
    expect((await world.logIn(visitor)).status).toBe(302);
    expect(await world.strategy.grant('1')).toMatchObject({ ended: false, refreshTokenExpiresAt: undefined });
    expect(await whoami(visitor)).toMatchObject({ authorized: true });
  });

  test('keeps the pair of a refresh that runs at that moment', async () => {
    await loggedIn({ strategy: { ...byUser, tokenStore: memoryTokenStore() } });
    const { service, strategy } = world;
    clock.advance(7_200);
    const callback = await world.begin(browser);
    const release = hold(service, 'token');
    const refreshing = strategy.client('1').accessToken();
    refreshing.catch(() => undefined);
    await expect.poll(() => refreshTokens().filter((token) => token !== undefined)).toHaveLength(1);
    service.fail('token', { body: { access_token: jwtOf('1'), token_type: 'bearer', expires_in: 3600 } });
    const page = visit(callback);
    await expect.poll(() => world.tokenRequests().length).toBe(2);
    release();
    expect((await page).status).toBe(302);
    await refreshing.catch(() => undefined);
    clock.advance(3_600);
    expect((await projects()).status).toBe(200);
  });
});
