import { parseArgs } from 'node:util';

const USAGE = `npm run bench -- [options]

  --growth      the scenarios of growth instead of the targets (npm run bench:growth)
  --only NAME   one scenario; may be given several times
  --quick       few and short rounds: shows what is broken, not how fast anything is
  --json FILE   keeps the results there; those of other scenarios in the file stay (default: bench/results.json, not with --quick)
  --document    measures nothing; writes docs/performance.md anew from the file
`;

/** @param {{ targets: readonly string[], growth: readonly string[] }} groups names of scenarios @returns the options, or ends the process with the usage */
export function readCommandLine({ targets, growth }) {
  const { values } = parse();
  const names = [...targets, ...growth];
  const unknown = values.only?.find((name) => !names.includes(name));
  if (unknown !== undefined || values.help) {
    console.error(`${USAGE}\nScenarios: ${targets.join(', ')}; growth: ${growth.join(', ')}`);
    process.exit(unknown === undefined ? 0 : 2);
  }
  const group = values.growth ? growth : targets;
  return {
    wanted: values.only ?? group,
    quick: values.quick ?? false,
    file: values.json ?? (values.quick ? undefined : 'bench/results.json'),
    measures: values.document !== true,
    writesDocument: values.quick !== true,
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        growth: { type: 'boolean' },
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
