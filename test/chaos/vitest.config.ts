import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.js';

// Real processes and real servers, which are killed, frozen and cut off. Takes minutes, and prints figures.
export default defineConfig({
  resolve: base.resolve ?? {},
  test: { include: ['test/chaos/*.chaos.ts'], hookTimeout: 120_000, fileParallelism: false },
});
