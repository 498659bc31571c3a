import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Tally } from './tally.js';

const COMMAND = fileURLToPath(new URL('run.mjs', import.meta.url));
const TIMEOUT_MS = 900_000;

/** Runs the command `npm run simulate`. */
function simulate(...options: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { maxBuffer: 2 ** 28, cwd: fileURLToPath(new URL('../..', import.meta.url)) };
    execFile(process.execPath, [COMMAND, ...options], settings, (error, stdout, stderr) => {
      // 1 stands for findings, which the output tells.
      if (error && error.code !== 1) reject(new Error(stderr || error.message));
      else resolve(stdout);
    });
  });
}

function total({ modes }: Tally): number {
  return Object.values(modes).reduce((sum, { trials }) => sum + trials, 0);
}

describe('several processes in simulated time', () => {
  it(
    'keep every invariant in 2,000 random histories and with every single fault',
    async () => {
      const tally: Tally = JSON.parse(await simulate('--seeds', '2000', '--exhaustive', '1', '--json'));
      expect(tally.violations).toEqual({});
      // What is under test is the package: the faults have to reach it.
      expect(total(tally)).toBeGreaterThan(7_000);
      expect(Object.keys(tally.losses).map((name) => name.split('  ')[1])).toEqual(
        expect.arrayContaining(['answer lost', 'crash', 'failover']),
      );
    },
    TIMEOUT_MS,
  );

  it(
    'do the very same again for the same seed',
    async () => {
      const first = await simulate('--seed', '40');
      expect(await simulate('--seed', '40')).toBe(first);
      expect(await simulate('--seed', '41')).not.toBe(first);
      expect(first.split('\n').length).toBeGreaterThan(500);
    },
    TIMEOUT_MS,
  );

  it(
    'do the very same whatever was played before, in whichever thread',
    async () => {
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
    },
    TIMEOUT_MS,
  );

  it(
    'do the very same in every mode while no used refresh token is shown',
    async () => {
      const some = ['--exhaustive', '1', '--scenario', 'brief', '--json'];
      const once: Tally = JSON.parse(await simulate(...some));
      const each: Tally = JSON.parse(await simulate(...some, '--each-mode'));
      expect(once.played).toBeLessThan(each.played);
      expect({ ...once, played: 0, events: 0 }).toEqual({ ...each, played: 0, events: 0 });
    },
    TIMEOUT_MS,
  );

  it(
    'show each deliberate breakage of the protocol',
    async () => {
      const lines = (await simulate('--mutations')).trim().split('\n');
      expect(lines.filter((line) => line.endsWith('NOT FOUND'))).toEqual([]);
      expect(lines.length).toBeGreaterThanOrEqual(20);
    },
    TIMEOUT_MS,
  );
});
