import { describe, expect, test } from 'vitest';
import { clock, loggedIn, projects, whoami, world } from '../support/one-world.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';

const HOURS = 3600;

describe("the application's clock", threats(52), () => {
  test.each([3, -3])('%i hours off from the service makes no loop and no storm', async (hours) => {
    const ours = new TestClock();
    ours.advance(hours * HOURS);
    await loggedIn({ strategy: { clock: ours.now } });
    for (let minute = 0; minute < 240; minute += 4) {
      ours.advance(240);
      clock.advance(240);
      expect((await projects()).status).toBe(200);
    }
    expect(world.tokenRequests()).toHaveLength(2);
  });

  test('that jumps to and fro makes no loop and no storm', async () => {
    const ours = new TestClock();
    await loggedIn({ strategy: { clock: ours.now } });
    for (const hours of [3, -3, -3, 3, 3, -3]) {
      ours.advance(hours * HOURS);
      for (let index = 0; index < 10; index++) expect((await projects()).status).toBe(200);
    }
    // One for each jump at the most.
    expect(world.tokenRequests().length).toBeLessThanOrEqual(6);
  });

  test('that was set back does not make tokens last: the 401 of the API tells', async () => {
    const ours = new TestClock();
    await loggedIn({ strategy: { clock: ours.now } });
    ours.advance(-3 * HOURS);
    clock.advance(2 * HOURS);
    for (let index = 0; index < 10; index++) expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('that was set back during an outage does not make the pause one of hours', async () => {
    await loggedIn();
    clock.advance(2 * HOURS);
    const { grantId } = await whoami();
    const client = world.strategy.client(grantId);
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 503 });
    await expect(client.accessToken()).rejects.toMatchObject({ status: 503 });
    clock.advance(-3 * HOURS);
    await client.accessToken();
    clock.advance(6 * HOURS);
    await client.accessToken();
  });
});

describe('a token of a lifetime', threats(34), () => {
  test.each([0, -5, 'soon', null, undefined, 1e300, '7200', 7200.5])(
    'of %j seconds makes no refresh loop, and is refreshed within a day',
    async (expiresIn) => {
      await loggedIn();
      const token = { access_token: 'opaque', token_type: 'bearer', expires_in: expiresIn };
      clock.advance(2 * HOURS);
      world.service.fail('token', { status: 200, body: token });
      for (let index = 0; index < 10; index++) expect((await whoami()).authorized).toBe(true);
      expect(world.tokenRequests()).toHaveLength(1);
      clock.advance(24 * HOURS);
      expect((await projects()).status).toBe(200);
      expect(world.tokenRequests()).toHaveLength(2);
    },
  );
});
