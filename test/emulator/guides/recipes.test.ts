import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { chromiumPath, hasChromium } from '../../support/chromium.js';
import { buildCommand } from '../built-command.js';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('./emulator/', import.meta.url));
const project = fileURLToPath(new URL('../../..', import.meta.url));

function succeeds(file: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(file, args, { stdio: 'ignore' });
    return true;
  } catch {
    if (process.env.REQUIRE_SERVICES === '1') throw new Error(`${file} ${args.join(' ')} does not work`);
    return false;
  }
}

let service: Emulator;
beforeAll(async () => {
  service = await startEmulator();
});
afterAll(() => service.close());

describe('recipes that drive the emulator over HTTP', () => {
  test.skipIf(!succeeds('python3', '-c', 'import pytest'))('pytest', async () => {
    const { path, remove } = buildCommand();
    const PYTHONDONTWRITEBYTECODE = '1';
    const env = {
      ...process.env,
      PYTHONDONTWRITEBYTECODE,
      EMULATOR_COMMAND: `${process.execPath} ${path} emulator --port 0 --quiet`,
    };
    try {
      const { stdout } = await run('python3', ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', folder], { env });
      expect(stdout).toContain('2 passed');
    } finally {
      remove();
    }
  });

  test.skipIf(!succeeds('curl', '--version'))('curl', async () => {
    const { stdout } = await run('sh', [`${folder}/login.sh`, service.authUrl]);
    expect(stdout).toBe('during the outage: 503\nafter the outage: refreshed\nafter the revocation: 400\n');
  });
});

// Jest's globals are those of Vitest here; what is tested is the recipe.
describe('the recipe for Jest', async () => {
  vi.stubGlobal('beforeEach', (work: () => Promise<unknown>) =>
    beforeEach(async () => {
      vi.stubEnv('EMULATOR_URL', service.authUrl);
      await work();
    }),
  );
  const tests: [string, () => Promise<void>][] = [];
  vi.stubGlobal('test', (title: string, work: () => Promise<void>) => tests.push([title, work]));
  vi.stubGlobal('expect', expect);
  const running = await startEmulator();
  vi.stubEnv('EMULATOR_URL', running.authUrl);
  await import('./emulator/login.jest.js' as string);
  afterAll(() => running.close());
  for (const [title, work] of tests) test(title, work);
});

describe('the recipe for Playwright', () => {
  test.skipIf(!hasChromium())('its tests pass', { timeout: 120_000 }, async () => {
    const cli = fileURLToPath(new URL('../../../node_modules/@playwright/test/cli.js', import.meta.url));
    const env = { ...process.env, CHROMIUM: chromiumPath, VITEST: undefined };
    const args = [
      cli,
      'test',
      '--config',
      `${folder}/playwright.config.ts`,
      '--workers',
      '1',
      '--timeout',
      '0',
      '--reporter',
      'line',
    ];
    const output = mkdtempSync(join(tmpdir(), 'emulator-playwright-'));
    args.push('--output', output);
    const { stdout } = await run(process.execPath, args, { cwd: project, env }).catch((error) => error);
    rmSync(output, { recursive: true, force: true });
    expect(stdout).toContain('4 passed');
  });
});
