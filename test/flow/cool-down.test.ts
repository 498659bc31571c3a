import { describe, expect, test } from 'vitest';
import { type ApiClient, memoryTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import { hold } from '../support/hold.js';
import { clock, loggedIn, whoami, world } from '../support/one-world.js';
import { orSample } from '../support/sample.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const CALLS = orSample(500, 100);
const apiRequests = () => world.service.requests.filter(({ path }) => path.startsWith('/api'));
const client = async (): Promise<ApiClient> => world.strategy.client((await whoami()).grantId);
const logInWithStore = (timeout = 10_000) => loggedIn({ strategy: { tokenStore: memoryTokenStore(), timeout } });

describe('tokens that the API refuses', threats(51), () => {
  test(`${CALLS} calls that the API refuses at once make one refresh and one more try each`, async () => {
    await logInWithStore(120_000);
    const api = await client();
    world.service.expireAccessTokens();
    await Promise.all(Array.from({ length: CALLS }, () => api.projects()));
    expect(world.tokenRequests()).toHaveLength(1);
    expect(apiRequests()).toHaveLength(2 * CALLS);
  });

  test('a token that is refused and already replaced makes no refresh', async () => {
    await logInWithStore();
    const api = await client();
    world.service.expireAccessTokens();
    // Its 401 comes when others have long got a new token.
    const release = hold(world.service, 'api');
    const late = api.projects();
    await until(() => expect(apiRequests()).toHaveLength(1));
    await Promise.all([api.projects(), api.projects()]);
    release();
    await late;
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('a token that another process has replaced already is taken from the store', async () => {
    const tokenStore = memoryTokenStore();
    await loggedIn({ strategy: { tokenStore } });
    const { grantId } = await whoami();
    const other = await another({ strategy: { tokenStore } });
    world.service.expireAccessTokens();
    await other.strategy.client(grantId).projects();
    await world.strategy.client(grantId).projects();
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('a token that another process has replaced is refreshed, once, if the API refuses the new one too', async () => {
    const tokenStore = memoryTokenStore();
    await loggedIn({ strategy: { tokenStore } });
    const { grantId } = await whoami();
    const other = await another({ strategy: { tokenStore } });
    world.service.expireAccessTokens();
    await other.strategy.client(grantId).projects();
    world.service.expireAccessTokens();
    await world.strategy.client(grantId).projects();
    expect(world.tokenRequests()).toHaveLength(2);
    // The same once more, while the API refuses everything: no loop.
    clock.advance(60);
    world.service.expireAccessTokens();
    await other.strategy.client(grantId).projects();
    world.service.fail('api', { status: 401, times: Number.POSITIVE_INFINITY });
    world.service.requests.length = 0;
    const client = world.strategy.client(grantId);
    for (let call = 0; call < 3; call++) await expect(client.projects()).rejects.toMatchObject({ status: 401 });
    expect(world.tokenRequests()).toHaveLength(1);
    expect(apiRequests().length).toBeLessThanOrEqual(3 + 2);
  });

  test('new tokens that are refused as well start a cool-down, which grows and then ends', async () => {
    await logInWithStore();
    const api = await client();
    const stop = world.service.fail('api', { status: 401, times: Number.POSITIVE_INFINITY });
    const refused = async () =>
      expect(await api.projects().catch((error: unknown) => error)).toMatchObject({ status: 401 });
    for (let index = 0; index < 20; index++) await refused();
    expect(world.tokenRequests()).toHaveLength(1);
    for (const [index, seconds] of [30, 60, 120, 240, 480, 600, 600].entries()) {
      clock.advance(seconds - 0.1);
      await refused();
      expect(world.tokenRequests()).toHaveLength(index + 1);
      clock.advance(0.2);
      await refused();
      expect(world.tokenRequests()).toHaveLength(index + 2);
    }
    stop();
    await api.projects();
    world.service.expireAccessTokens();
    clock.advance(600);
    await api.projects();
    expect(world.tokenRequests()).toHaveLength(9);
  });

  test(`${CALLS} calls at once whose new token is refused as well make one refresh`, async () => {
    await logInWithStore(120_000);
    const api = await client();
    world.service.fail('api', { status: 401, times: Number.POSITIVE_INFINITY });
    const outcomes = await Promise.allSettled(Array.from({ length: CALLS }, () => api.projects()));
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test.each([403, 429])('status %i makes no refresh', async (status) => {
    await logInWithStore();
    const api = await client();
    world.service.fail('api', { status, times: Number.POSITIVE_INFINITY });
    await expect(api.post('/projects', { json: {}, retry: false })).rejects.toMatchObject({ status });
    expect(world.tokenRequests()).toEqual([]);
  });
});
