/** One setting in which the smoke application runs. */
export interface Combination {
  readonly node: string;
  readonly framework: string;
  readonly passport: string;
  readonly session: string;
  readonly modules: string;
}

/** The oldest Node that package.json allows, then the newest of each line with long support or current. */
export const NODES = ['20.19.0', '22', '24', '26'] as const;
/** With 4.16.0, the oldest that package.json allows. */
const FRAMEWORKS = ['Express 5', 'Express 4', 'Express 4.16.0', 'Connect 3'] as const;
const PASSPORTS = ['0.7', '0.6.0'] as const;
const SESSIONS = ['express-session', 'cookie-session'] as const;
const MODULES = ['import', 'require()'] as const;

/**
 * All pairs of values, in 16 combinations instead of 128: each Node meets each framework, and along the way
 * everything else.
 */
const PAIRWISE: readonly Combination[] = NODES.flatMap((node, row) =>
  FRAMEWORKS.map((framework, column) => ({
    node,
    framework,
    passport: choose(PASSPORTS, row + column),
    session: choose(SESSIONS, (row >> 1) + column),
    modules: choose(MODULES, row + (column >> 1)),
  })),
);

/** NestJS brings framework, Passport's glue and module system along: 11 is CommonJS, 12 is ESM and needs a newer Node. */
const NEST: readonly Combination[] = NODES.flatMap((node) => [
  { node, framework: 'NestJS 11', passport: '0.6.0', session: 'express-session', modules: 'require()' },
  { node, framework: 'NestJS 12', passport: '0.7', session: 'express-session', modules: 'import' },
]);

/** Runtimes other than Node, each with both ways to load the package. */
const RUNTIMES: readonly Combination[] = ['Bun', 'Deno'].flatMap((node) =>
  MODULES.map((modules) => ({ node, framework: 'Express 5', passport: '0.7', session: 'express-session', modules })),
);

/** What is run. */
export const COMBINATIONS: readonly Combination[] = [...PAIRWISE, ...NEST, ...RUNTIMES];

/** Pairs of values of two columns that no combination has. */
export function missingPairs(combinations: readonly Combination[] = PAIRWISE): readonly string[] {
  const columns = { node: NODES, framework: FRAMEWORKS, passport: PASSPORTS, session: SESSIONS, modules: MODULES };
  const cells = (Object.keys(columns) as (keyof Combination)[]).flatMap((column) =>
    columns[column].map((value) => ({ column, value })),
  );
  return cells.flatMap((one) =>
    cells
      .filter((other) => other.column > one.column)
      .filter(
        (other) => !combinations.some((row) => row[one.column] === one.value && row[other.column] === other.value),
      )
      .map((other) => `${one.value} with ${other.value}`),
  );
}

/** A combination in words. */
export function titleOf({ node, framework, passport, session, modules }: Combination): string {
  return `${/^\d/.test(node) ? 'Node ' : ''}${node}, ${framework}, Passport ${passport}, ${session}, ${modules}`;
}

function choose(values: readonly [string, string], index: number): string {
  return values[index % 2 === 0 ? 0 : 1];
}
