import { randomBytes } from 'node:crypto';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { heapBytes } from '../support/heap.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { TestClock } from '../support/test-clock.js';
import { startWorld } from '../support/world.js';

const GRANTS = 400;

/** Bytes of an access token, and of a refresh token. */
const TOKEN_BYTES = 16_000;

/** A third of what the tokens of all grants take. */
const MAX_GROWTH_BYTES = (GRANTS * 2 * TOKEN_BYTES) / 3;

const randomToken = () => randomBytes(TOKEN_BYTES / 2).toString('hex');

test.skipIf(!hasRedis())(
  '64 grants at most are in memory for a refresh ahead of time',
  { timeout: 600_000 },
  async () => {
    const server = await startRedis();
    const client = await createClient({ url: server.url }).connect();
    onTestFinished(async () => {
      client.destroy();
      await server.stop();
    });
    const clock = new TestClock();
    let logins = 0;
    const world = await startWorld({
      service: { clock: clock.now, refreshTokenReuse: 'revoke', keepRequests: 1 },
      strategy: {
        clock: clock.now,
        cache: false,
        tokenStore: redisTokenStore(client),
        grantId: (_req: unknown, user: { id: string }) => user.id,
      },
      verify: (_access: string, _refresh: string, _profile: object, done: (error: unknown, user: object) => void) =>
        done(null, { id: `${logins++}` }),
    });
    onTestFinished(() => world.close());
    const pair = () => ({ token_type: 'bearer', expires_in: 7_200, access_token: randomToken() });
    while (logins < GRANTS) {
      world.service.fail('token', { body: { ...pair(), refresh_token: randomToken() } });
      expect((await world.logIn(new Browser())).status).toBe(302);
    }
    clock.advance(7_200 - 60);
    world.service.fail('token', { hang: true, times: Number.POSITIVE_INFINITY });
    const before = await heapBytes();
    for (let id = 0; id < GRANTS; id++) await world.strategy.client(`${id}`).accessToken();
    expect((await heapBytes()) - before).toBeLessThan(MAX_GROWTH_BYTES);
  },
);
