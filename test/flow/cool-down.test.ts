import { afterEach, describe, expect, test } from 'vitest';
import { type ApiClient, memoryTokenStore } from '../../src/index.js';
import { EventLog } from '../support/event-log.js';
import { hold } from '../support/hold.js';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { until } from '../support/until.js';
import { startWorld } from '../support/world.js';

let flow: LoggedIn;
afterEach(() => flow.world.close());

const apiRequests = () => flow.world.service.requests.filter(({ path }) => path.startsWith('/api'));
const client = async (): Promise<ApiClient> => flow.world.strategy.client((await flow.whoami()).grantId);
const logIn = () => logInto({ strategy: { tokenStore: memoryTokenStore() } });

describe('tokens that the API refuses', { meta: { threats: [51] } }, () => {
  test('500 calls that the API refuses at once make one refresh and one more try each', async () => {
    flow = await logInto({ strategy: { tokenStore: memoryTokenStore(), timeout: 120_000 } });
    const api = await client();
    flow.world.service.expireAccessTokens();
    await Promise.all(Array.from({ length: 500 }, () => api.projects()));
    expect(flow.world.tokenRequests()).toHaveLength(1);
    expect(apiRequests()).toHaveLength(1_000);
  });

  test('a token that is refused and already replaced makes no refresh', async () => {
    flow = await logIn();
    const api = await client();
    flow.world.service.expireAccessTokens();
    // Its 401 comes when others have long got a new token.
    const release = hold(flow.world.service, 'api');
    const late = api.projects();
    await until(() => expect(apiRequests()).toHaveLength(1));
    await Promise.all([api.projects(), api.projects()]);
    release();
    await late;
    expect(flow.world.tokenRequests()).toHaveLength(1);
  });

  test('a token that another process has replaced already is taken from the store', async () => {
    const tokenStore = memoryTokenStore();
    flow = await logInto({ strategy: { tokenStore } });
    const { grantId } = await flow.whoami();
    const other = await startWorld({ running: flow.world.service, strategy: { tokenStore, clock: flow.clock.now } });
    flow.world.service.expireAccessTokens();
    await other.strategy.client(grantId).projects();
    await flow.world.strategy.client(grantId).projects();
    expect(flow.world.tokenRequests()).toHaveLength(1);
    await other.close();
  });

  test('a token that another process has replaced is refreshed, once, if the API refuses the new one too', async () => {
    const tokenStore = memoryTokenStore();
    flow = await logInto({ strategy: { tokenStore } });
    const { world, clock } = flow;
    const { grantId } = await flow.whoami();
    const other = await startWorld({ running: world.service, strategy: { tokenStore, clock: clock.now } });
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
    await other.close();
  });

  test('new tokens that are refused as well start a cool-down, which grows and then ends', async () => {
    flow = await logIn();
    const api = await client();
    const stop = flow.world.service.fail('api', { status: 401, times: Number.POSITIVE_INFINITY });
    const refused = async () =>
      expect(await api.projects().catch((error: unknown) => error)).toMatchObject({ status: 401 });
    for (let index = 0; index < 20; index++) await refused();
    expect(flow.world.tokenRequests()).toHaveLength(1);
    for (const [index, seconds] of [1, 2, 4].entries()) {
      flow.clock.advance(seconds - 0.1);
      await refused();
      expect(flow.world.tokenRequests()).toHaveLength(index + 1);
      flow.clock.advance(0.2);
      await refused();
      expect(flow.world.tokenRequests()).toHaveLength(index + 2);
    }
    stop();
    await api.projects();
    flow.world.service.expireAccessTokens();
    flow.clock.advance(60);
    await api.projects();
    expect(flow.world.tokenRequests()).toHaveLength(5);
  });

  test('500 calls at once whose new token is refused as well make one refresh', async () => {
    flow = await logIn();
    const api = await client();
    flow.world.service.fail('api', { status: 401, times: Number.POSITIVE_INFINITY });
    const outcomes = await Promise.allSettled(Array.from({ length: 500 }, () => api.projects()));
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(flow.world.tokenRequests()).toHaveLength(1);
  });

  test.each([403, 429])('status %i makes no refresh', async (status) => {
    flow = await logIn();
    const api = await client();
    flow.world.service.fail('api', { status, times: Number.POSITIVE_INFINITY });
    await expect(api.post('/projects', { json: {}, retry: false })).rejects.toMatchObject({ status });
    expect(flow.world.tokenRequests()).toEqual([]);
  });
});

test('the event of a refresh after a 401 names the trigger', async () => {
  flow = await logIn();
  const events = new EventLog('refresh');
  flow.world.service.expireAccessTokens();
  expect((await flow.projects()).status).toBe(200);
  events.stop();
  expect(events.values('refresh', 'trigger')).toEqual(['refused']);
});
