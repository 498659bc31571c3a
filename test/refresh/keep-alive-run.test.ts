import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type EndedGrant, endedGrant, type Grant } from '../../src/grants/grant.js';
import { type KeepAliveSettings, keepAlive, readKeepAliveOptions } from '../../src/jobs/keep-alive.js';
import type { Refresher } from '../../src/refresh/refresher.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { gate, grantOf, LIFETIME_S } from './fixture.js';

const NOTHING = { seen: 0, refreshed: 0, ended: 0, failed: 0 };

type Outcome = Awaited<ReturnType<Refresher['keepAlive']>>;

let clock: TestClock;
/** The refreshes that have begun: of which grant, and when, in milliseconds. */
let begun: [id: string, ms: number][];
let refresh: (id: string) => Promise<Outcome>;
let pauseMs: () => number;
let aborter: AbortController;

beforeEach(() => {
  clock = new TestClock();
  begun = [];
  refresh = async () => 'refreshed';
  pauseMs = () => 0;
  aborter = new AbortController();
});

/** The grant of a login at this moment. */
const login = (changes: Partial<Grant> = {}) =>
  grantOf('any', { expiresAt: clock.now() + LIFETIME_S * 1000, ...changes });

function run(
  listed: Iterable<[string, Grant | EndedGrant]> | AsyncIterable<[string, Grant | EndedGrant]>,
  { canReissue = false, ...settings }: Partial<KeepAliveSettings> & { readonly canReissue?: boolean } = {},
) {
  const startedAt = performance.now();
  const refresher = {
    keepAlive: (id: string) => {
      begun.push([id, performance.now() - startedAt]);
      return refresh(id);
    },
    pauseMs: () => pauseMs(),
    untilClosed: () => aborter.signal,
  };
  async function* all() {
    yield* listed;
  }
  const grants = { all, refresher, clock: clock.now, canReissue };
  return keepAlive(grants, { olderThan: 0, rate: 1_000_000, signal: undefined, ...settings });
}

const ids = () => begun.map(([id]) => id);
/** So many grants that are old. */
const many = (count: number) => Array.from({ length: count }, (_, index): [string, Grant] => [`${index}`, login()]);

test.for<[what: string, grant: () => Grant | EndedGrant, ageS: number, seen: boolean, refreshed: boolean]>([
  ['that are old enough', login, 3_600, true, true],
  ['that are younger', login, 3_599.999, true, false],
  ['that have ended', () => endedGrant(login()), 3_600, false, false],
  ['whose refresh tokens have expired', () => login({ refreshTokenExpiresAt: 0 }), 3_600, false, false],
  ['without a refresh token', () => login({ refreshToken: undefined }), 3_600, true, false],
  ['without a refresh token that have expired', () => login({ refreshToken: undefined }), 7_200, false, false],
  ['whose access tokens have expired', login, 7_200, true, true],
])('grants %s', async ([, grant, ageS, seen, refreshed]) => {
  const grants: [string, Grant | EndedGrant][] = [['id', grant()]];
  clock.advance(ageS);
  const expected = { ...NOTHING, seen: Number(seen), refreshed: Number(refreshed) };
  expect(await run(grants, { olderThan: 3_600 })).toEqual(expected);
  expect(ids()).toEqual(refreshed ? ['id'] : []);
});

test('an application’s grant has not ended with its token, and is not refreshed', async () => {
  const grants: [string, Grant][] = [['id', login({ refreshToken: undefined })]];
  clock.advance(LIFETIME_S);
  expect(await run(grants, { canReissue: true })).toEqual({ ...NOTHING, seen: 1 });
  expect(ids()).toEqual([]);
});

test('a grant that another process has refreshed since it began is not refreshed again', async () => {
  async function* grants(): AsyncGenerator<[string, Grant]> {
    yield ['of-before', login()];
    clock.advance(1);
    const refreshed = login();
    clock.advance(1_000);
    yield ['refreshed', refreshed];
  }
  expect(await run(grants())).toEqual({ ...NOTHING, seen: 2, refreshed: 1 });
  expect(ids()).toEqual(['of-before']);
});

test('what became of each grant is counted, if this process did it', async () => {
  const outcomes: Outcome[] = ['refreshed', 'ended', undefined, 'failed', 'refreshed'];
  refresh = async (id) => outcomes[Number(id)];
  expect(await run(many(5))).toEqual({ seen: 5, refreshed: 2, ended: 1, failed: 1 });
});

describe('in time', () => {
  beforeEach(() => {
    stopTime();
    // The process has run for a while.
    vi.advanceTimersByTime(60_000);
  });

  test('refreshes are spaced by the rate, however long each takes', async () => {
    refresh = async () => {
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      return 'refreshed';
    };
    const result = run(many(3), { rate: 4 });
    await vi.advanceTimersByTimeAsync(10_499);
    const ended = vi.fn();
    void result.then(ended);
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await result).toEqual({ ...NOTHING, seen: 3, refreshed: 3 });
    expect(begun).toEqual([
      ['0', 0],
      ['1', 250],
      ['2', 500],
    ]);
  });

  test.for<[what: string, pauses: number[], rate: number, begunAt: number[]]>([
    ['the pause of the token endpoint', [700], 10, [700, 800]],
    ['its spacing, if that is longer', [0, 0, 0, 50], 10, [0, 100]],
    ['three pauses at the most', Array(9).fill(1_000), 10, [3_000, 6_000]],
    ['that pause, if it is longer than its spacing', [0, 0, 0, 150], 10, [0, 150]],
  ])('a refresh waits for %s', async ([, pauses, rate, begunAt]) => {
    pauseMs = () => pauses.shift() ?? 0;
    const result = run(many(2), { rate });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await result).toMatchObject({ refreshed: 2 });
    expect(begun.map(([, ms]) => ms)).toEqual(begunAt);
  });

  test('32 refreshes run at once; the next begins when one has ended', async () => {
    const ends: (() => void)[] = [];
    refresh = (id) => new Promise((resolve) => void ends.push(() => resolve(id === '0' ? 'failed' : 'refreshed')));
    const result = run(many(34), { rate: 1_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(begun).toHaveLength(32);
    ends[3]?.();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(begun).toHaveLength(33);
    for (const end of ends) end();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const end of ends) end();
    expect(await result).toEqual({ seen: 34, refreshed: 33, ended: 0, failed: 1 });
  });

  test.for<[when: string, abortAtMs: number, grants: number, begun: number]>([
    ['before the first', 0, 4, 0],
    ['while it spaces them', 100, 4, 1],
    ['while the last ones run', 3_100, 4, 4],
    ['while others wait for a place', 40_000, 40, 32],
  ])('ends with the reason of its signal %s', async ([, abortAtMs, grants, count]) => {
    refresh = () => new Promise(() => {});
    const reason = new Error('enough');
    if (abortAtMs === 0) aborter.abort(reason);
    const failed = expect(run(many(grants), { rate: 1 })).rejects.toBe(reason);
    await vi.advanceTimersByTimeAsync(abortAtMs);
    aborter.abort(reason);
    await failed;
    expect(begun).toHaveLength(count);
  });

  test('ends with the reason of its signal though the grants that are left are too young', async () => {
    const reason = new Error('enough');
    const stopped = gate();
    async function* grants(): AsyncGenerator<[string, Grant]> {
      yield ['id', login()];
      await stopped.opened;
      yield ['other', login()];
    }
    const failed = expect(run(grants(), { olderThan: 60 })).rejects.toBe(reason);
    await vi.advanceTimersByTimeAsync(0);
    aborter.abort(reason);
    stopped.open();
    await failed;
  });
});

test('what the list of grants throws is thrown', async () => {
  async function* grants(): AsyncGenerator<[string, Grant]> {
    yield ['id', login()];
    throw new Error('The store fails');
  }
  await expect(run(grants())).rejects.toThrow('The store fails');
  expect(ids()).toEqual(['id']);
});

const { signal } = new AbortController();
const AGES = 'expected a number of seconds from 0 to 315360000';

test.for<[options: object, expected: object | string]>([
  [{ olderThan: 0 }, { olderThan: 0, rate: 10, signal: undefined }],
  [
    { olderThan: 315_360_000, rate: 0.01 },
    { olderThan: 315_360_000, rate: 0.01, signal: undefined },
  ],
  [
    { olderThan: 1, rate: 1_000, signal },
    { olderThan: 1, rate: 1_000, signal },
  ],
  [{ olderThan: 315_360_001 }, `olderThan: ${AGES}, got 315360001`],
  [{ olderThan: -1 }, `olderThan: ${AGES}, got -1`],
  [{ olderThan: 1, rate: 0.009 }, 'rate: expected a number of refreshes a second from 0.01 to 1000, got 0.009'],
  [{ olderThan: 1, rate: 1_001 }, 'rate: expected a number of refreshes a second from 0.01 to 1000, got 1001'],
  [
    { olderThan: 1, signal: { throwIfAborted: () => {} } },
    expect.stringMatching(/^signal: expected an AbortSignal.*addEventListener/) as unknown as string,
  ],
  [
    { olderThan: 1, signal: { addEventListener: () => {} } },
    expect.stringMatching(/^signal: expected an AbortSignal.*throwIfAborted/) as unknown as string,
  ],
  [{ olderThan: 1, older: 1 }, expect.stringMatching(/^older: is not an option of keepAlive/) as unknown as string],
])('options %j', ([options, expected]) => {
  const read = () => readKeepAliveOptions(options);
  if ('olderThan' in Object(expected)) expect(read()).toEqual(expected);
  else expect(read).toThrow(expect.objectContaining({ message: expected }));
});
