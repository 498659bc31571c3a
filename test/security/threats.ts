import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = join(ROOT, 'docs/figures/security.md');
const [BEGIN, END] = ['<!-- threats -->\n', '\n<!-- /threats -->'];

/** The table of docs/figures/security.md, and the page around it. A line has the number that tests name in their meta. */
function readPage(): readonly [before: string, table: string, after: string] {
  const [before, rest] = readFileSync(PAGE, 'utf8').split(BEGIN);
  const [table, after] = rest?.split(END) ?? [];
  if (before === undefined || table === undefined || after === undefined)
    throw new Error('there is no table of threats');
  return [before + BEGIN, table, END + after];
}

/** The table as it stands there. */
export const readTable = (): string => readPage()[1];

const rows = readTable()
  .split('\n')
  .flatMap((line) => {
    const [, number, threat, outcome] = /^\| (\d+) \| (.*) \| (.*) \| .* \|$/.exec(line) ?? [];
    return number === undefined ? [] : [{ number: Number(number), threat, outcome }];
  });

/** The numbers of all lines. */
export const NUMBERS: readonly number[] = rows.map(({ number }) => number);

/** The files with tests of each line: those that name it in the meta of a test or a group of tests. */
export function testsOfThreats(): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>(NUMBERS.map((number) => [number, []]));
  for (const file of testFiles()) {
    for (const number of numbersIn(readFileSync(join(ROOT, file), 'utf8'))) {
      const files = found.get(number);
      if (!files) throw new Error(`${file} names the threat ${number}, for which there is no line`);
      files.push(file);
    }
  }
  return found;
}

/** The table as it has to be. */
export function threatsTable(): string {
  const tests = testsOfThreats();
  const lines = rows.map(({ number, threat, outcome }) => {
    const files = tests
      .get(number)
      ?.map((file) => `\`${file.slice('test/'.length).replace(/(?:\.unit)?\.test\.ts$/, '')}\``);
    return `| ${number} | ${threat} | ${outcome} | ${files?.join(', ')} |`;
  });
  return ['| | what may come | what comes of it | shown in `test/` |', '|---|---|---|---|', ...lines].join('\n');
}

/** Puts it into the page. */
export function writeTable(): void {
  const [before, , after] = readPage();
  writeFileSync(PAGE, before + threatsTable() + after);
}

function testFiles(): string[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(?!.*node_modules).*\.(?:test|perf|interop)\.ts$/.test(name))
    .filter((name) => !name.endsWith('threats-table.test.ts'))
    .map((name) => `test/${name.split(sep).join('/')}`)
    .sort();
}

function numbersIn(source: string): Set<number> {
  const metas = source.match(/\bthreats(?:: \[|\()\d[\d, ]*[\])]/g) ?? [];
  return new Set(metas.flatMap((meta) => (meta.match(/\d+/g) ?? []).map(Number)));
}
