import { defineConfig } from 'vitest/config';

// Needs the packages of package.json beside this file: npm ci --prefix test/package installs them.
export default defineConfig({
  test: { include: ['test/package/*.package.ts'], testTimeout: 120_000, hookTimeout: 120_000, maxWorkers: 2 },
});
