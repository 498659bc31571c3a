import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^passport-oauth-app$/, replacement: source('index.ts') },
      { find: /^passport-oauth-app\/providers$/, replacement: source('providers.ts') },
      { find: /^passport-oauth-app\/redis$/, replacement: source('grants/redis-token-store.ts') },
      { find: /^passport-oauth-app\/postgres$/, replacement: source('grants/postgres-token-store.ts') },
      { find: /^passport-oauth-app\/emulator$/, replacement: source('emulator/index.ts') },
      { find: /^passport-oauth-app\/emulator\/vitest$/, replacement: source('emulator/vitest.ts') },
      { find: /^passport-oauth-app\/emulator\/playwright$/, replacement: source('emulator/playwright.ts') },
      { find: /^passport-oauth-app\/conformance$/, replacement: source('grants/conformance.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
