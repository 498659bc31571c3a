import { describe, expect, it } from 'vitest';
import { RULES } from './model.js';
import { checkModel } from './model-checker.js';
import { MODES } from './service.js';

describe('the model of the refresh protocol', () => {
  it.each(MODES)('keeps every property in all states where reuse is met with %s', (mode) => {
    const report = checkModel({ mode, processes: 2, rotations: 2, faults: 2 });
    console.log(mode, report.states, report.ends, report.violation);
    expect(report.violation).toBeUndefined();
  });

  it.each(RULES)('needs the rule "%s"', (rule) => {
    const report = checkModel({ mode: 'revoke', processes: 2, rotations: 2, faults: 2, without: [rule] });
    console.log(rule, report.states, report.violation);
    expect(report.violation).toBeDefined();
  });
});
