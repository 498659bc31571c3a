import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { entryPoints } from './rolldown.config.js';

/** Tests import the package by its name, and get the files of src/. */
export const alias = Object.entries(entryPoints).map(([name, file]) => ({
  find: new RegExp(name === 'index' ? '^passport-oauth-app$' : `^passport-oauth-app/${name}$`),
  replacement: fileURLToPath(new URL(file, import.meta.url)),
}));

/** Warnings of the package that tests cause and listen to: Node does not print them among the results. By code, else by type. */
const EXPECTED_WARNINGS = [
  ...['ERR_IGNORED_OPTION', 'ERR_LOGIN_HOST', 'ERR_NO_LOCK', 'ERR_NO_NOTIFICATIONS', 'ERR_NO_PROFILE_ID'],
  ...['ERR_REFRESH_REFUSED', 'ERR_SHORT_LEASE', 'ERR_STRATEGY_NAME', 'CanaryWarning', 'EmulatorWarning', 'TypeError'],
];

/** Files of tests of the package as the registry would have it. */
const packed = ['consumers/{command,runtime,types}', 'house/{guides,package,readme}'].map(
  (names) => `test/${names}.test.ts`,
);

/** Files that read the heap, each in a process that holds nothing of others. */
const heap = ['test/perf/*.perf.ts', 'test/refresh/memory.test.ts', 'test/waiting.unit.test.ts'];

export default defineConfig({
  resolve: { alias },
  test: {
    execArgv: EXPECTED_WARNINGS.map((name) => `--disable-warning=${name}`),
    // A test ends by what it waits for, also with a tenth of a core: the limits are for what never comes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Twice the cores that CI has: many tests wait for databases, browsers and leases.
    maxWorkers: 4,
    // Files share what is loaded: a third of the time of short ones.
    isolate: false,
    // What a test that passes has printed is not about the test.
    silent: 'passed-only',
    expect: { poll: { timeout: 119_000 } },
    projects: [
      { extends: true, test: { name: 'heap', include: heap, isolate: true } },
      {
        extends: true,
        test: { name: 'packed', include: packed, globalSetup: 'test/consumers/packed-once.ts' },
      },
      {
        extends: true,
        test: {
          name: 'all others',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...packed, ...heap],
          setupFiles: ['test/support/leftovers.ts'],
        },
      },
    ],
  },
});
