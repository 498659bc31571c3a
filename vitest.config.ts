import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { entryPoints } from './rolldown.config.js';

/** Tests import the package by its name, and get the files of src/. */
export const alias = Object.entries(entryPoints).map(([name, file]) => ({
  find: new RegExp(name === 'index' ? '^passport-oauth-app$' : `^passport-oauth-app/${name}$`),
  replacement: fileURLToPath(new URL(file, import.meta.url)),
}));

export default defineConfig({
  resolve: { alias },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'behaviour', include: ['test/**/*.test.ts'] } },
      // Times and memory, measured alone: one file after the other, when all other tests have ended.
      {
        extends: true,
        test: {
          name: 'perf',
          include: ['test/perf/*.perf.ts'],
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
