import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import base, { alias } from '../../vitest.config.js';

/** Packages that the files to copy, in docs/stores and docs/examples, import. */
const imported = ['@aws-sdk', 'axios', 'jsforce'].map((name) => {
  const replacement = fileURLToPath(new URL(`node_modules/${name}`, import.meta.url));
  return { find: new RegExp(`^${name}(?=/|$)`), replacement };
});
const express4 = fileURLToPath(new URL('node_modules/express', import.meta.url));

/** Files whose behaviour the framework has a part in. */
const FRAMEWORK = '{callback,forward,login,logout,redirect-uri,require-authorization,return-to,session}';

// Needs the packages of package.json beside this file: npm run test:interop installs them.
export default defineConfig({
  resolve: { alias: [...alias, ...imported] },
  test: {
    execArgv: base.test?.execArgv ?? [],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 119_000 } },
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'interop', include: ['test/interop/*.interop.ts'] } },
      {
        extends: true,
        resolve: { alias: [{ find: /^express$/, replacement: express4 }] },
        test: {
          name: 'Express 4',
          include: [`test/flow/${FRAMEWORK}.test.ts`, 'test/embedded/{hand-over,identify,table}.test.ts'],
        },
      },
    ],
  },
});
