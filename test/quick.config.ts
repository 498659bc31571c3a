import { defineConfig } from 'vitest/config';
import base, { CORE, filesWithin } from '../vitest.config.js';

const { projects: _projects, ...test } = base.test ?? {};

export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    ...test,
    // Each further worker would load all of it once more.
    maxWorkers: 2,
    env: { SAMPLE: '1' },
    include: filesWithin(CORE),
  },
});
