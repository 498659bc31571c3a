import { mergeConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import house from '../../vitest.config.js';

/** The tests that a mutant has to fail: `npm run mutate` names them. */
const tests: readonly string[] = JSON.parse(process.env.MUTATION_TESTS ?? '[]');

/** Runs files in the order in which `tests` names them: those of the folder find most mutants, and no other file runs then. */
class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => tests.findIndex((path) => moduleId.includes(`/${path}`));
    return [...files].sort((one, other) => place(one) - place(other));
  }
}

export default mergeConfig(
  { resolve: house.resolve },
  {
    test: {
      include: tests.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.test.ts`)),
      exclude: ['**/*chromium*', '**/broken-connection.test.ts'],
      // What a mutant lets hang costs this long.
      testTimeout: 30_000,
      hookTimeout: 60_000,
      // Files share what is loaded: most of the time of a mutant went into loading it again for each file.
      isolate: false,
      sequence: { sequencer: InOrder },
    },
  },
);
