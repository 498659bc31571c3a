import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisTokenStore } from '../../src/redis/redis-token-store.js';
import { connectForSuite, hasRedis, type RedisClient } from '../support/redis-server.js';
import { bundleSimulation, installSimulation } from './bundle.mjs';
import { Random } from './random.js';
import type { Tally } from './tally.js';

const COMMAND = fileURLToPath(new URL('run.mjs', import.meta.url));
const TIMEOUT_MS = 900_000;

/** All of it for `npm run simulate`; a sample in a usual run of the tests. */
const isWhole = process.env.SIMULATE === 'whole';
const PART = isWhole ? '1/1' : '3/288';
const MUTATIONS_PART = isWhole ? '1/1' : '3/16';

let bundle: string;

/** Runs the command `npm run simulate`, with what was bundled once for all tests. */
function simulate(...options: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { maxBuffer: 2 ** 28, cwd: fileURLToPath(new URL('../..', import.meta.url)) };
    execFile(process.execPath, [COMMAND, '--bundle', bundle, ...options], settings, (error, stdout, stderr) => {
      // 1 stands for findings, which the output tells.
      if (error && error.code !== 1) reject(new Error(stderr || error.message));
      else resolve(stdout);
    });
  });
}

function total({ modes }: Tally): number {
  return Object.values(modes).reduce((sum, { trials }) => sum + trials, 0);
}

function counts({ losses }: Tally): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(losses).map(([name, { count }]) => [name, count]));
}

describe('several processes in simulated time', { timeout: TIMEOUT_MS }, () => {
  beforeAll(async () => {
    bundle = (await bundleSimulation()).directory;
  });
  afterAll(() => rm(bundle, { recursive: true }));

  it(`keep every invariant in 2,000 random histories and with every single fault (part ${PART})`, async () => {
    const tally: Tally = JSON.parse(await simulate('--seeds', '2000', '--exhaustive', '1', '--part', PART, '--json'));
    expect(tally.violations).toEqual({});
    // What is under test is the package: the faults have to reach it.
    expect(total(tally)).toBeGreaterThan(isWhole ? 7_000 : 50);
    expect(Object.keys(tally.losses).map((name) => name.split('  ')[1])).toEqual(
      expect.arrayContaining(['answer lost', ...(isWhole ? ['crash', 'failover'] : [])]),
    );
  });

  it('give all of 200 users their page when the tokens of all have ended, within 1.3 of what the token endpoint needs', async () => {
    const lines = (await simulate('--scenario', 'morning', '--mode', 'revoke')).split('\n');
    const ends = lines.flatMap((line) => {
      const [, ms, ending] = /^ *([\d.]+) +\w+ +request of u\d+ ends (.*)$/.exec(line) ?? [];
      return ms !== undefined && Number(ms) < 400_000 ? [{ ms: Number(ms), ending }] : [];
    });
    expect(ends.filter(({ ending }) => ending !== 'authorized')).toEqual([]);
    expect(ends).toHaveLength(400);
    expect(Math.max(...ends.map(({ ms }) => ms)) - 300_000).toBeLessThan((200 / 5) * 400 * 1.3);
    expect(lines.filter((line) => line.startsWith('violation'))).toEqual([]);
  });

  it('do the very same again for the same seed', async () => {
    const first = await simulate('--seed', '40');
    expect(await simulate('--seed', '40')).toBe(first);
    expect(await simulate('--seed', '41')).not.toBe(first);
    expect(first.split('\n').length).toBeGreaterThan(500);
  });

  it('do the very same whatever was played before, in whichever thread', async () => {
    const digests = [40, 41, 42].map(async (seed) => {
      const tally: Tally = JSON.parse(
        await simulate('--from', String(seed), '--seeds', '1', '--mode', 'revoke', '--json'),
      );
      return tally.digest;
    });
    const [first = 0, second = 0, third = 0] = await Promise.all(digests);
    const together: Tally = JSON.parse(
      await simulate('--from', '40', '--seeds', '3', '--jobs', '1', '--mode', 'revoke', '--json'),
    );
    expect(together.digest).toBe((first + second + third) % 2 ** 32);
  });

  it('do the very same in every mode while no used refresh token is shown', async () => {
    const some = ['--exhaustive', '1', '--scenario', 'brief', '--part', isWhole ? '1/4' : '1/64', '--json'];
    const once: Tally = JSON.parse(await simulate(...some));
    const each: Tally = JSON.parse(await simulate(...some, '--each-mode'));
    expect(once.played).toBeLessThan(each.played);
    expect([once.digest, once.modes, counts(once)]).toEqual([each.digest, each.modes, counts(each)]);
  });

  it(`show each deliberate breakage of the protocol (part ${MUTATIONS_PART})`, async () => {
    const lines = (await simulate('--mutations', '--part', MUTATIONS_PART)).trim().split('\n');
    expect(lines.filter((line) => line.endsWith('NOT FOUND'))).toEqual([]);
    expect(lines.length).toBeGreaterThanOrEqual(isWhole ? 20 : 2);
  });
});

describe.skipIf(!hasRedis())('the simulated Redis', () => {
  let client: RedisClient;
  connectForSuite((connected) => {
    client = connected;
  });

  it('answers every command of the token store, in 500 random calls, as a real one does', async () => {
    installSimulation();
    const simulated = new (await import('./redis-server.js')).RedisServer(() => 0);
    const differences: unknown[] = [];
    const replies = new Set<string>();
    const store = redisTokenStore({
      isOpen: true,
      sendCommand: async (command: readonly string[]) => {
        const real: unknown = await client.sendCommand([...command]);
        const other: unknown = simulated.execute(command);
        replies.add(`${command[0]} ${typeof real} ${typeof real === 'number' ? real : ''}`);
        if (real !== other) differences.push({ command, real, other });
        return real;
      },
    });
    const random = new Random(1);
    const versions = [1, 2 ** 47 - 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1];
    const calls = [
      (id: string) => store.get(id),
      (id: string, version: number) => store.set(id, { version, expiresAt: 1, sealed: `é "${version}" \u{1f511}` }),
      (id: string, version: number) =>
        store.update(id, { version: random.pick(versions), expiresAt: 2, sealed: '\\u0000' }, version),
      (id: string, version: number) => store.delete(id, random.chance(0.3) ? undefined : version),
      (id: string) => store.lock(id, async () => undefined),
    ];
    for (let call = 0; call < 500; call += 1) {
      await random.pick(calls)(random.pick(['one', 'other']), random.pick(versions));
      if (random.chance(0.02)) for (const each of ['no JSON', '[1]', '{"version":"1"}']) await damage(each);
    }
    expect(differences).toEqual([]);
    expect([...replies].sort()).toEqual(['EVAL number 0', 'EVAL number 1', 'GET object ', 'GET string ']);

    async function damage(record: string): Promise<void> {
      const command = ['SET', 'oauth-app-grant:one', record, 'PX', '1000000'];
      await client.sendCommand(command);
      simulated.execute(command);
      await store.update('one', { version: 2, expiresAt: 2, sealed: '' }, 1);
    }
  });
});
