import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import base from '../vitest.config.js';

/** Folders of tests of the core: what it does over HTTP. */
const CORE = ['api', 'flow', 'grants', 'http', 'login', 'oauth', 'refresh', 'request'];

/** Modules that start a browser, a database or another process, or read the heap. */
const OUTSIDE = /^import .*'.*(?:chromium|child_process|heap|mariadb|open-store|postgres|processes|redis|sqlite).*';$/m;

const files = CORE.flatMap((name) => {
  const folder = join(import.meta.dirname, name);
  return readdirSync(folder).map((file) => join(folder, file));
});

export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    ...base.test,
    // Files share what is loaded, which saves a third of the time. Each further worker would load all of it once more.
    isolate: false,
    maxWorkers: 2,
    env: { SAMPLE: '1' },
    include: files.filter((file) => file.endsWith('.test.ts') && !OUTSIDE.test(readFileSync(file, 'utf8'))),
  },
});
