import { defineConfig } from 'vitest/config';

// Needs the registry: packages, and other versions of Node.
export default defineConfig({
  test: {
    include: ['test/matrix/*.matrix.ts'],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    fileParallelism: false,
    maxConcurrency: 2,
  },
});
