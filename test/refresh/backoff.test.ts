import { expect, test } from 'vitest';
import { ServiceUnavailableError } from '../../src/errors.js';
import { EndpointBackoff } from '../../src/refresh/backoff.js';
import { threats } from '../support/threats.js';

test(
  'a pause that the token endpoint asks for keeps its length, whatever requests sent before it bring',
  threats(79),
  () => {
    const backoff = new EndpointBackoff();
    const refused = (retryAfter?: number) => new ServiceUnavailableError('refused', { retryAfter });
    backoff.fail('first', refused(20), 0);
    // Late answers to requests of other grants: a shorter pause, none, a success.
    backoff.fail('second', refused(1), 500);
    backoff.fail('third', refused(), 500);
    backoff.succeed('fourth');
    for (const grant of ['first', 'second', 'third', 'fourth', 'fifth']) {
      expect(backoff.error(grant, 19_900)).toMatchObject({ retryAfter: 1 });
      expect(backoff.error(grant, 20_100)).toBeUndefined();
    }
    // A longer one counts; one that the clock has left far ahead does not.
    backoff.fail('first', refused(5), 30_000);
    backoff.fail('second', refused(9), 30_500);
    expect(backoff.remainingMs('third', 39_000)).toBe(500);
    backoff.fail('first', refused(2), -1_000_000);
    expect(backoff.remainingMs('third', -1_000_000)).toBe(2_000);
  },
);
