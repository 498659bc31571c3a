import { expect, it } from 'vitest';
import { ServiceUnavailableError } from '../../src/errors.js';
import { Outages } from '../../src/refresh/outages.js';

const failure = (retryAfter?: number) => new ServiceUnavailableError('down', { retryAfter });

it('leaves a grant alone after its failure, and the others not', () => {
  const outages = new Outages();
  expect(outages.failed('a', failure(), 0).retryAfter).toBe(1);
  expect(() => outages.check('a', 500)).toThrow(ServiceUnavailableError);
  expect(() => outages.check('b', 500)).not.toThrow();
  expect(() => outages.check('a', 1_000)).not.toThrow();
});

it('leaves all alone after the failures of five grants, and not after five failures of one', () => {
  const outages = new Outages();
  for (let index = 0; index < 5; index++) outages.failed('a', failure(), index * 100_000);
  expect(outages.remainingMs('b', 400_001)).toBe(0);
  for (const id of ['b', 'c', 'd', 'e']) outages.failed(id, failure(), 500_000);
  expect(outages.remainingMs('z', 500_001)).toBeGreaterThan(0);
});

it('leaves all alone where the service asks for it', () => {
  const outages = new Outages();
  expect(outages.failed('a', failure(7), 0).retryAfter).toBe(7);
  expect(outages.remainingMs('z', 1_000)).toBe(6_000);
  expect(() => outages.check('z', 0)).toThrow(expect.objectContaining({ retryAfter: 7 }));
});

it('keeps class, code and cause of the failure', () => {
  const cause = new Error('reset');
  const told = new Outages().failed('a', new ServiceUnavailableError('down', { code: 'ERR_X', cause }), 0);
  expect(told).toMatchObject({ message: 'down', code: 'ERR_X', cause });
});

it('is over for all once the service has answered anybody, and holds nothing then', () => {
  const outages = new Outages();
  for (const id of ['a', 'b', 'c', 'd', 'e']) outages.failed(id, failure(), 0);
  outages.answered('a');
  expect(outages.remainingMs('z', 1)).toBe(0);
  for (const id of ['b', 'c', 'd', 'e']) outages.forget(id);
  expect(outages.size).toBe(0);
});
