import { mergeConfig } from 'vitest/config';
import house from '../../vitest.config.js';

/** The tests that a mutant has to fail: `npm run mutate` names them. */
const tests: readonly string[] = JSON.parse(process.env.MUTATION_TESTS ?? '[]');

export default mergeConfig(
  { resolve: house.resolve },
  {
    test: {
      include: tests.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.test.ts`)),
      exclude: ['**/*chromium*', '**/broken-connection.test.ts'],
      testTimeout: 30_000,
      hookTimeout: 60_000,
    },
  },
);
