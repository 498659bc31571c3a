import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMBINATIONS, missingPairs, titleOf } from './combinations.js';
import { type Installation, install } from './installation.js';
import { writeTable } from './table.js';

let installation: Installation;
const works = new Map<string, boolean>();

beforeAll(async () => {
  installation = await install(['combinations']);
});
afterAll(async () => {
  if (works.size === COMBINATIONS.length) await writeTable(COMBINATIONS, (one) => works.get(titleOf(one)) === true);
  await installation?.remove();
});

/** What the smoke application shows, in every combination. */
const SHOWN = [
  'a script that is not logged in gets a 401',
  'a browser logs in and comes back to its page, which calls the API',
  'the session refers to the grant and holds no token',
  'ten requests with an expired token share one refresh',
  'a token that the API refuses is replaced',
  'a declined login lets nobody in',
  'a forged callback gets a 403, and no request leaves',
  'a logout ends the login',
];

describe('the combinations', () => {
  it('hold every pair of Node, framework, Passport, session and module system', () => {
    expect(missingPairs()).toEqual([]);
  });
});

describe('an application', () => {
  it.concurrent.each(COMBINATIONS.map((combination) => [titleOf(combination), combination] as const))(
    'works from login to logout, with no warning: %s',
    async (title, combination) => {
      works.set(title, false);
      const { stdout, stderr } = await installation.smoke(combination);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual(SHOWN);
      works.set(title, true);
    },
  );
});
