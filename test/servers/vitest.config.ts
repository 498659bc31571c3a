import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.js';

// Authorization servers of others, one after the other: each is a process of its own.
export default defineConfig({
  resolve: base.resolve ?? {},
  test: { include: ['test/servers/*.servers.ts'], testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false },
});
