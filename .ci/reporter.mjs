import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Writes what .ci/summary.mjs counts into the file that the environment names as REPORT. A reporter of Vitest. */
export default class Reporter {
  onTestRunEnd(modules, unhandledErrors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const titlesOf = (state) => tests.filter((test) => test.result().state === state).map(titleOf);
    const report = {
      passed: titlesOf('passed').length,
      failed: tests
        .filter((test) => test.result().state === 'failed')
        .map((test) => `${titleOf(test)}: ${reasonOf(test)}`),
      skipped: [...titlesOf('skipped'), ...titlesOf('pending')],
      retried: tests.filter((test) => test.diagnostic()?.retryCount > 0).map(titleOf),
      // Of no test: files that cannot be loaded, hooks of a file, errors between tests.
      errors: [
        ...modules.flatMap((module) => [module, ...module.children.allSuites()].flatMap((part) => part.errors())),
        ...unhandledErrors,
      ].map(({ message }) => message),
      files: modules.map((module) => {
        const { collectDuration, duration } = module.diagnostic();
        return { file: relative('', module.moduleId), seconds: (collectDuration + duration) / 1000 };
      }),
    };
    writeFileSync(process.env.REPORT, JSON.stringify(report));
  }
}

function titleOf(test) {
  return `${relative('', test.module.moduleId)} > ${test.fullName}`;
}

/** The first line of what a failed test has thrown, and where, so that the last page of a log is enough to begin with. */
function reasonOf(test) {
  const [error] = test.result().errors ?? [];
  const [first = ''] = (error?.message ?? '').split('\n');
  const frame = error?.stacks?.[0];
  const place = frame ? ` (${relative('', frame.file)}:${frame.line})` : '';
  return `${first.slice(0, 300)}${place}`;
}
