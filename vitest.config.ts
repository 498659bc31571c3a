import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^passport-oauth-app$/, replacement: source('index.ts') },
      { find: /^passport-oauth-app\/providers$/, replacement: source('providers/index.ts') },
      { find: /^passport-oauth-app\/redis$/, replacement: source('stores/redis-token-store.ts') },
      { find: /^passport-oauth-app\/postgres$/, replacement: source('stores/postgres-token-store.ts') },
      { find: /^passport-oauth-app\/emulator$/, replacement: source('emulator/index.ts') },
      { find: /^passport-oauth-app\/conformance$/, replacement: source('stores/conformance/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
