import { describe, expect, test } from 'vitest';
import { ServiceUnavailableError, TokenError } from '../../src/errors.js';
import { Backoffs, EndpointBackoff } from '../../src/refresh/backoff.js';
import { threats } from '../support/threats.js';

describe('the backoff of a key', () => {
  test('lasts a second, and twice as long after each further failure, half a minute at most', () => {
    const backoffs = new Backoffs();
    let now = 0;
    for (const ms of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      expect(backoffs.fail('key', now)).toBe(ms);
      expect(backoffs.remainingMs('key', now + ms - 1)).toBe(1);
      now += ms;
      expect(backoffs.remainingMs('key', now)).toBe(0);
    }
    for (let count = 0; count < 1_100; count += 1) now += backoffs.fail('key', now);
    expect(backoffs.fail('key', now)).toBe(30_000);
    expect(backoffs.remainingMs('other', now)).toBe(0);
    backoffs.delete('key');
    expect(backoffs.fail('key', now)).toBe(1_000);
  });

  test('counts failures while it lasts as one, and none makes it longer', () => {
    const backoffs = new Backoffs();
    backoffs.fail('key', 0);
    backoffs.fail('key', 1_000);
    expect(backoffs.fail('key', 1_500)).toBe(1_500);
    expect(backoffs.fail('key', 2_900)).toBe(100);
    expect(backoffs.fail('key', 3_000)).toBe(4_000);
  });

  test.for([
    [5_000, 5_000],
    [100, 1_000],
    [90_000, 30_000],
  ])('of %i ms that is asked for lasts %i ms', ([requestedMs, ms]) => {
    expect(new Backoffs().fail('key', 0, requestedMs)).toBe(ms);
  });

  test('is not made shorter by one that is asked for', () => {
    const backoffs = new Backoffs();
    backoffs.fail('key', 0, 20_000);
    expect(backoffs.fail('key', 1_000, 2_000)).toBe(19_000);
  });

  test('is forgotten half a minute after its end, or when the clock is set back by as much', () => {
    for (const [now, keys] of [
      [31_000, ['early', 'late', 'new']],
      [31_001, ['late', 'new']],
      [32_001, ['new']],
      [-29_000, ['early', 'late', 'new']],
      [-29_001, ['late', 'new']],
    ] as const) {
      const backoffs = new Backoffs();
      backoffs.fail('early', 0);
      backoffs.fail('late', now < 0 ? now : 1_000);
      backoffs.fail('new', now);
      expect([...backoffs.keys()]).toEqual(keys);
    }
  });

  test('is dropped before those that began later, once there are ten thousand', () => {
    const backoffs = new Backoffs();
    for (let key = 0; key < 10_000; key += 1) backoffs.fail(`${key}`, 0);
    backoffs.fail('0', 0);
    expect(backoffs.size).toBe(10_000);
    backoffs.fail('one more', 0);
    expect(backoffs.size).toBe(10_000);
    expect(['0', '1', '2', 'one more'].map((key) => backoffs.has(key))).toEqual([true, false, true, true]);
  });
});

const unavailable = (retryAfter?: number) => new ServiceUnavailableError('refused', { retryAfter });

/** Seconds for which the grant is not to be refreshed, as its callers are told. */
const retryAfterOf = (backoff: EndpointBackoff, id: string, now: number) =>
  (backoff.error(id, now) as ServiceUnavailableError | undefined)?.retryAfter;

test(
  'a pause that the token endpoint asks for keeps its length, whatever requests sent before it bring',
  threats(79),
  () => {
    const backoff = new EndpointBackoff();
    backoff.fail('first', unavailable(20), 0);
    // Late answers to requests of other grants: a shorter pause, none, a success.
    backoff.fail('second', unavailable(1), 500);
    backoff.fail('third', unavailable(), 500);
    backoff.succeed('fourth');
    for (const grant of ['first', 'second', 'third', 'fourth', 'fifth']) {
      expect(backoff.error(grant, 19_900)).toMatchObject({ retryAfter: 1 });
      expect(backoff.error(grant, 20_100)).toBeUndefined();
    }
    // A longer one counts; one that the clock has left far ahead does not.
    backoff.fail('first', unavailable(5), 30_000);
    backoff.fail('second', unavailable(9), 30_500);
    expect(backoff.remainingMs('third', 39_000)).toBe(500);
    backoff.fail('first', unavailable(2), -1_000_000);
    expect(backoff.remainingMs('third', -1_000_000)).toBe(2_000);
  },
);

describe('the token endpoint', () => {
  /** Five grants whose refreshes have failed: the endpoint counts as down for all. */
  const down = (now = 0) => {
    const backoff = new EndpointBackoff();
    for (const id of ['1', '2', '3', '4', '5']) backoff.fail(id, unavailable(), now);
    return backoff;
  };

  test('is left alone for a grant that has failed, which is told until when', () => {
    const backoff = new EndpointBackoff();
    expect(backoff.error('id', 0)).toBeUndefined();
    const failure = new ServiceUnavailableError('No answer', { code: 'ERR_OF_TEST', cause: 'its cause' });
    const told = { name: 'ServiceUnavailableError', message: 'No answer', code: 'ERR_OF_TEST', cause: 'its cause' };
    expect(backoff.fail('id', failure, 0)).toMatchObject({ ...told, retryAfter: 1 });
    expect(backoff.fail('id', failure, 1_000)).toMatchObject({ ...told, retryAfter: 2 });
    expect(backoff.error('id', 1_500)).toMatchObject({
      name: 'ServiceUnavailableError',
      message: 'The token endpoint has just failed; it is tried again later. The grant is kept.',
      retryAfter: 2,
    });
    expect([backoff.remainingMs('id', 1_500), backoff.pauseMs(1_500)]).toEqual([1_500, 0]);
    expect(backoff.error('other', 1_500)).toBeUndefined();
    expect(backoff.error('id', 3_000)).toBeUndefined();
  });

  test('is left alone for all grants once five have failed, and not if one has failed as often', () => {
    const backoff = new EndpointBackoff();
    for (const id of ['1', '1', '1', '1', '1', '2', '3', '4']) backoff.fail(id, unavailable(), 0);
    expect(backoff.pauseMs(0)).toBe(0);
    backoff.fail('5', unavailable(), 0);
    expect([backoff.pauseMs(0), retryAfterOf(backoff, 'other', 0)]).toEqual([1_000, 1]);
    backoff.fail('6', unavailable(), 1_000);
    expect([backoff.pauseMs(1_000), retryAfterOf(backoff, 'other', 1_000)]).toEqual([2_000, 2]);
  });

  test('asks for a pause of all grants, however few have failed', () => {
    const backoff = down();
    backoff.fail('6', unavailable(10), 0);
    expect(retryAfterOf(backoff, 'other', 0)).toBe(10);
    backoff.succeed('6');
    expect(backoff.pauseMs(1_000)).toBe(9_000);
  });

  const refusal = new TokenError('The scope is unknown', { error: 'invalid_scope' });

  test.for<[what: string, answer: (backoff: EndpointBackoff) => void, pauseMs: number]>([
    ['ends with an answer to any grant', (backoff) => backoff.succeed('other'), 0],
    ['ends with a refusal', (backoff) => backoff.refuse('other', refusal, 500), 0],
    ['goes on after a login or a logout', (backoff) => backoff.forget('1'), 500],
  ])('is down, and that %s', ([, answer, pauseMs]) => {
    const backoff = down();
    answer(backoff);
    expect(backoff.pauseMs(500)).toBe(pauseMs);
    // What has failed before an answer counts no more.
    backoff.fail('6', unavailable(), 1_500);
    expect(backoff.pauseMs(1_500)).toBe(pauseMs === 0 ? 0 : 2_000);
  });

  test('that has answered a grant is asked again for this one, not for others', () => {
    const backoff = down();
    backoff.succeed('1');
    expect(['1', '2'].map((id) => backoff.remainingMs(id, 500))).toEqual([0, 500]);
    backoff.forget('2');
    expect(['2', '3'].map((id) => backoff.remainingMs(id, 500))).toEqual([0, 500]);
  });

  test('that has refused a grant of the application is not asked again at once: callers get copies of the refusal', () => {
    const backoff = new EndpointBackoff();
    backoff.refuse('id', refusal, 0);
    const errors = [backoff.error('id', 0), backoff.error('id', 999)];
    for (const error of errors) {
      expect(error).toMatchObject({ name: 'TokenError', error: 'invalid_scope', message: refusal.message });
      expect(error).not.toBe(refusal);
    }
    expect(backoff.error('other', 0)).toBeUndefined();
    expect(backoff.error('id', 1_000)).toBeUndefined();
    backoff.refuse('id', refusal, 1_000);
    expect(backoff.remainingMs('id', 1_000)).toBe(2_000);
  });

  test('that is down after a refusal is no refusal any more', () => {
    const backoff = new EndpointBackoff();
    backoff.refuse('id', refusal, 0);
    for (const id of ['1', '2', '3', '4', '5']) backoff.fail(id, unavailable(), 900);
    expect(backoff.error('id', 950)).toMatchObject({ name: 'TokenError' });
    expect(backoff.error('id', 1_500)).toMatchObject({ name: 'ServiceUnavailableError', retryAfter: 1 });
  });

  test.for<[retryAt: number, ms: number]>([
    [5_000, 4_000],
    [1_000, 0],
    [999, 0],
    [31_000, 30_000],
    // No backoff is that long: the clocks differ.
    [31_001, 0],
  ])('that another process leaves alone until %i is left alone for %i ms from 1000 on', ([retryAt, ms]) => {
    const backoff = new EndpointBackoff();
    backoff.join('id', 1_000, retryAt);
    expect(backoff.remainingMs('id', 1_000)).toBe(ms);
  });
});
