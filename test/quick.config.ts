import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import base from '../vitest.config.js';

/** Modules that start a browser, a database or another process, or read the heap. */
const OUTSIDE =
  /^(?:import|}) .*'.*(?:child_process|chromium|framed-page|heap|mariadb|open-store|playwright|postgres|processes|program|redis|sqlite).*';$/m;

/** Folders of tests of the core: what it does over HTTP. */
const CORE = ['api', 'flow', 'grants', 'http', 'login', 'oauth', 'refresh', 'session'];

/** The test files of these folders that stay within their process. */
const files = CORE.flatMap((folder) =>
  readdirSync(join(import.meta.dirname, folder)).map((file) => `test/${folder}/${file}`),
).filter(
  (file) => file.endsWith('.test.ts') && !OUTSIDE.test(readFileSync(join(import.meta.dirname, '..', file), 'utf8')),
);

const { projects: _projects, ...test } = base.test ?? {};

export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    ...test,
    // A bug that hangs is told soon. Nothing here waits for time to pass.
    testTimeout: 15_000,
    hookTimeout: 15_000,
    // Each further worker would load all of it once more.
    maxWorkers: 2,
    env: { SAMPLE: '1' },
    include: files,
    setupFiles: ['test/support/leftovers.ts'],
  },
});
