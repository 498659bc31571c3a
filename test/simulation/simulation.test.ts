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

describe('several processes in simulated time', () => {
  it(
    'keep every invariant in 2,000 random histories and with every single fault',
    async () => {
      const tally: Tally = JSON.parse(await simulate('--seeds', '2000', '--exhaustive', '1', '--json'));
      expect(tally.violations).toEqual({});
      // What is under test is the package: the faults have to reach it.
      expect(tally.trials).toBeGreaterThan(7_000);
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
    'show each deliberate breakage of the protocol',
    async () => {
      const lines = (await simulate('--mutations')).trim().split('\n');
      expect(lines.filter((line) => line.endsWith('NOT FOUND'))).toEqual([]);
      expect(lines.length).toBeGreaterThanOrEqual(20);
    },
    TIMEOUT_MS,
  );
});
