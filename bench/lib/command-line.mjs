import { parseArgs } from 'node:util';

export const USAGE = `npm run bench -- [options]

  --only NAME   one scenario; may be given several times
  --quick       few and short rounds: shows what is broken, not how fast anything is
  --json FILE   keeps the results there; those of other scenarios in the file stay (default: bench/results.json, not with --quick)
  --document    measures nothing; writes docs/performance.md anew from the file
`;

/** @param {readonly string[]} names of all scenarios @returns the options, or ends the process with the usage */
export function readCommandLine(names) {
  const { values } = parse();
  const unknown = values.only?.find((name) => !names.includes(name));
  if (unknown !== undefined || values.help) {
    console.error(`${USAGE}\nScenarios: ${names.join(', ')}`);
    process.exit(unknown === undefined ? 0 : 2);
  }
  return {
    wanted: values.only ?? names,
    quick: values.quick ?? false,
    file: values.json ?? (values.quick ? undefined : 'bench/results.json'),
    measures: values.document !== true,
    isComplete: values.only === undefined && values.quick !== true,
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        only: { type: 'string', multiple: true },
        quick: { type: 'boolean' },
        json: { type: 'string' },
        document: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    return process.exit(2);
  }
}
