import { appendFileSync } from 'node:fs';
import fc from 'fast-check';

/** Cases of all properties together: few in a usual run of the tests, a million with `npm run fuzz`. */
const TOTAL = Number(process.env.FUZZ_RUNS ?? 20_000);

/** The same at each run, unless told otherwise. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_300_101);

/** So that the rarest property is looked at in a usual run as well. */
const LEAST = 50;

/**
 * Holds a property against its share of all cases, and takes the count down where somebody wants it.
 *
 * @param share Part of all cases, from 0 to 1.
 */
export async function holds<T>(what: string, share: number, property: fc.IRawProperty<T>): Promise<void> {
  const numRuns = Math.max(LEAST, Math.round(TOTAL * share));
  let cases = 0;
  const run = property.run.bind(property);
  property.run = (value) => {
    cases += 1;
    return run(value);
  };
  await fc.assert(property, { numRuns, seed: SEED });
  noteFigure({ kind: 'fuzz', what, cases });
}

/** One line for whoever collects the figures; see `figures.mjs`. */
export function noteFigure(figure: Readonly<Record<string, string | number>>): void {
  const file = process.env.SECURITY_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(figure)}\n`);
}
