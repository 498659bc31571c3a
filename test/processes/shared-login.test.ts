import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startEmulator } from 'passport-oauth-app/emulator';
import { createClient } from 'redis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { rawRequest } from '../support/raw-request.js';
import { hasRedis, startRedis } from '../support/redis-server.js';

const SCRIPT = fileURLToPath(new URL('../support/login-worker.mjs', import.meta.url));
const CALLBACK = 'http://127.0.0.1/callback';

/** Starts a service, Redis, and so many processes of one application. */
async function startProcesses(count: number) {
  const [service, redis] = [await startEmulator({ refreshTokenReuse: 'revoke' }), await startRedis()];
  service.register({ clientID: service.options.clientID, redirectUrls: [CALLBACK] });
  const children: ChildProcess[] = [];
  const origins = await Promise.all(
    Array.from({ length: count }, async () => {
      const child = fork(SCRIPT, [JSON.stringify({ redis: redis.url, options: service.options })]);
      children.push(child);
      const [{ port }] = (await once(child, 'message')) as [{ port: number }];
      return `http://127.0.0.1:${port}`;
    }),
  );
  onTestFinished(async () => {
    for (const child of children) child.kill('SIGKILL');
    await redis.stop();
    await service.close();
  });
  return { service, redis, origins };
}

describe.skipIf(!hasRedis())('several processes over Redis', () => {
  test('make one token request for a callback that comes to each of them at once', {
    meta: { threats: [5, 59] },
  }, async () => {
    const { service, redis, origins } = await startProcesses(2);
    const [first = ''] = origins;
    for (let round = 0; round < 3; round++) {
      service.requests.length = 0;
      const begun = await rawRequest(first, '/login');
      const [cookie = ''] = begun.headers['set-cookie']?.[0]?.split(';') ?? [];
      const { search } = new URL(await service.approve(String(begun.headers.location)));
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          rawRequest(origins[index % origins.length] ?? first, `/callback${search}`, { headers: { cookie } }),
        ),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([302, ...Array.from({ length: 19 }, () => 403)]);
      expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(1);
    }
    const client = createClient({ url: redis.url });
    await client.connect();
    const keys = await client.keys('*');
    await client.close();
    expect(keys.filter((key) => /login:oauth-app\.[\w-]{11}\+[\w-]{43}$/.test(key))).toHaveLength(3);
    expect(keys.filter((key) => key.includes('login:') && key.endsWith('lock'))).toEqual([]);
  });
});
