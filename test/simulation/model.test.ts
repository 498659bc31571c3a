import { describe, expect, it } from 'vitest';
import { RULES, type Rule } from './model.js';
import { checkModel, type ModelReport } from './model-checker.js';
import { MODES, type Mode } from './service.js';

/** Two processes, two rotations, two faults: a hundred thousand states. One fault, a tenth of them, in a usual run of the tests. */
const isWhole = process.env.SIMULATE === 'whole';

function check(mode: Mode, without: readonly Rule[] = []): ModelReport {
  return checkModel({ mode, processes: 2, rotations: 2, faults: isWhole ? 2 : 1, without });
}

describe('the model of the refresh protocol', { timeout: 300_000 }, () => {
  it('keeps its properties in every state where a used refresh token is refused, and ends logins for named reasons only', () => {
    const { violation, ends, states } = check('refuse');
    expect(violation).toBeUndefined();
    expect(ends).toEqual(['answer lost', 'crash', ...(isWhole ? ['failover'] : [])]);
    expect(states).toBeGreaterThan(isWhole ? 100_000 : 10_000);
  });

  it('keeps its properties in every state where a used refresh token ends the grant, and ends logins for named reasons only', () => {
    const { violation, ends } = check('revoke');
    expect(violation).toBeUndefined();
    expect(ends).toEqual(['answer lost', 'crash', 'failover', 'frozen while sending', 'lease over']);
  });

  it('keeps its properties in every state where the last refresh token works once more', () => {
    expect(check('grace').violation).toBeUndefined();
  });

  it.each(RULES)('breaks a property without the rule "%s"', (rule) => {
    const modes: readonly Mode[] = MODES.filter((mode) => check(mode, [rule]).violation !== undefined);
    expect(modes).not.toEqual([]);
  });
});
