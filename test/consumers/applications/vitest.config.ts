import { defineConfig } from 'vitest/config';
import base from '../../../vitest.config.js';

// Applications of others, one after the other: each is a process of its own.
export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    include: ['test/consumers/applications/*.applications.ts'],
    // Says of each application that is skipped why.
    reporters: ['verbose'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
});
