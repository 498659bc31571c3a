import { expect, test, vi } from 'vitest';
import { passOn } from '../../src/login/passport-actions.js';
import { exchangeOf, noteActions, warnings } from './fixture.js';

const actions = (error: (error: unknown) => unknown) => ({ ...noteActions([]), error });
const fault = new Error('of the application');

test.for([
  ['An error', fault, fault],
  ['A text', 'text', 'text'],
  ...[undefined, null, false, 0, '', 'route', 'router'].map(
    (error) => [`What routers take for none, ${String(error)},`, error, expect.any(Error)] as const,
  ),
] as const)('%s is told as an error', async ([, error, told]) => {
  const report = vi.fn();
  const { res } = exchangeOf();
  await passOn(error, actions(report), res);
  expect(report.mock.calls).toEqual([[told]]);
  if (told !== error) expect(report.mock.calls[0]?.[0].message).toBe('verify or userProfile failed without a reason');
  expect(res.writableEnded).toBe(false);
});

test.for<[what: string, report: () => unknown, warning: string]>([
  [
    'throws',
    () => {
      throw fault;
    },
    'Error: of the application',
  ],
  ['rejects', () => Promise.reject(fault), 'Error: of the application'],
  [
    'throws no error',
    () => {
      throw 'text';
    },
    'A callback given to passport.authenticate threw',
  ],
])('where the application’s own callback %s, the browser gets a 500', async ([, report, message]) => {
  const warned = warnings();
  const { res } = exchangeOf();
  await passOn(fault, actions(report), res);
  expect([res.statusCode, res.writableEnded, warned]).toEqual([500, true, [{ code: undefined, message }]]);
});

test('what was sent before stays, where the application’s own callback throws', async () => {
  warnings();
  const throwing = actions(() => {
    throw fault;
  });
  await passOn(fault, throwing, undefined);
  const [begun, ended] = [exchangeOf().res, exchangeOf().res];
  begun.flushHeaders();
  ended.end();
  const end = vi.spyOn(ended, 'end');
  for (const res of [begun, ended]) await passOn(fault, throwing, res);
  expect([begun.statusCode, begun.writableEnded, ended.statusCode]).toEqual([200, true, 200]);
  expect(end).not.toHaveBeenCalled();
});
