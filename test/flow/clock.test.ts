import { afterEach, describe, expect, test } from 'vitest';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { TestClock } from '../support/test-clock.js';

const HOURS = 3600;

let flow: LoggedIn;
afterEach(() => flow.world.close());

describe("the application's clock", { meta: { threats: [52] } }, () => {
  test.each([3, -3])('%i hours off from the service makes no loop and no storm', async (hours) => {
    const ours = new TestClock();
    ours.advance(hours * HOURS);
    flow = await logInto({ strategy: { clock: ours.now } });
    for (let minute = 0; minute < 240; minute++) {
      ours.advance(60);
      flow.clock.advance(60);
      expect((await flow.projects()).status).toBe(200);
    }
    expect(flow.world.tokenRequests()).toHaveLength(2);
  });

  test('that jumps to and fro makes no loop and no storm', async () => {
    const ours = new TestClock();
    flow = await logInto({ strategy: { clock: ours.now } });
    for (const hours of [3, -3, -3, 3, 3, -3]) {
      ours.advance(hours * HOURS);
      for (let index = 0; index < 20; index++) expect((await flow.projects()).status).toBe(200);
    }
    // One for each jump at the most.
    expect(flow.world.tokenRequests().length).toBeLessThanOrEqual(6);
  });

  test('that was set back does not make tokens last: the 401 of the API tells', async () => {
    const ours = new TestClock();
    flow = await logInto({ strategy: { clock: ours.now } });
    ours.advance(-3 * HOURS);
    flow.clock.advance(2 * HOURS);
    for (let index = 0; index < 10; index++) expect((await flow.projects()).status).toBe(200);
    expect(flow.world.tokenRequests()).toHaveLength(1);
  });

  test('that was set back during an outage does not make the pause one of hours', async () => {
    flow = await logInto();
    flow.clock.advance(2 * HOURS);
    const { grantId } = await flow.whoami();
    const client = flow.world.strategy.client(grantId);
    flow.clock.advance(2 * HOURS);
    flow.world.service.fail('token', { status: 503 });
    await expect(client.accessToken()).rejects.toMatchObject({ status: 503 });
    flow.clock.advance(-3 * HOURS);
    await client.accessToken();
    flow.clock.advance(6 * HOURS);
    await client.accessToken();
  });
});

describe('a token of a lifetime', { meta: { threats: [34] } }, () => {
  test.each([0, -5, 'soon', null, undefined, 1e300, '7200', 7200.5])(
    'of %j seconds makes no refresh loop, and is refreshed within a day',
    async (expiresIn) => {
      flow = await logInto();
      const token = { access_token: 'opaque', token_type: 'bearer', expires_in: expiresIn };
      flow.clock.advance(2 * HOURS);
      flow.world.service.fail('token', { status: 200, body: token });
      for (let index = 0; index < 10; index++) expect((await flow.whoami()).authorized).toBe(true);
      expect(flow.world.tokenRequests()).toHaveLength(1);
      flow.clock.advance(24 * HOURS);
      expect((await flow.projects()).status).toBe(200);
      expect(flow.world.tokenRequests()).toHaveLength(2);
    },
  );
});
