import { appendFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';

/** Cases of all properties together: few in a usual run of the tests, a million with `npm run fuzz`. */
const TOTAL = Number(process.env.FUZZ_RUNS ?? 20_000);

/** The same at each run, unless told otherwise. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_300_101);

/** So that the rarest property is looked at in a usual run as well. */
const LEAST = 50;

const PROTOTYPES = [Object.prototype, Array.prototype, String.prototype, Function.prototype, Map.prototype];
const namesOfPrototypes = () => PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype).map(String));
const before = namesOfPrototypes();

/**
 * Checks values against a share of all cases, and takes the count down where somebody wants it. No property may have been
 * added to a prototype, or taken from it, since this module was loaded.
 *
 * @param share Part of all cases, from 0 to 1.
 * @param check Throws where something does not hold.
 */
export async function holds<T extends [unknown, ...unknown[]]>(
  what: string,
  share: number,
  values: { [K in keyof T]: fc.Arbitrary<T[K]> },
  check: (...values: T) => unknown,
): Promise<void> {
  const numRuns = Math.max(LEAST, Math.round(TOTAL * share));
  let cases = 0;
  const property = fc.asyncProperty<T>(...values, async (...given) => {
    cases += 1;
    await check(...given);
  });
  await fc.assert(property, { numRuns, seed: SEED });
  noteFigure({ kind: 'fuzz', what, cases });
  expect(namesOfPrototypes()).toEqual(before);
}

/** One line for whoever collects the figures; see `figures.mjs`. */
export function noteFigure(figure: Readonly<Record<string, string | number>>): void {
  const file = process.env.SECURITY_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(figure)}\n`);
}
