import { expect, test, vi } from 'vitest';
import { ServiceUnavailableError, TokenError, TokenStoreError } from '../../src/errors.js';
import type { RevocationEndpoint } from '../../src/oauth/revocation-endpoint.js';
import { Revocations } from '../../src/refresh/revocations.js';
import { stopTime } from '../support/stop-time.js';
import { gate } from './fixture.js';

const TOKENS = { accessToken: 'access', refreshToken: 'refresh' };

type Decision = 'revoke' | 'keep' | 'ask again';

/** Revocations at an endpoint that answers with these, and then as it should; `decisions` are those before each try. */
function open(answers: (Error | Promise<void>)[], decisions?: (Decision | Error)[]) {
  stopTime();
  const [began, asked, tried, events] = [performance.now(), [] as number[], [] as number[], [] as string[]];
  const revoke = async (tokens: typeof TOKENS) => {
    expect(tokens).toBe(TOKENS);
    tried.push(performance.now() - began);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    await answer;
  };
  const endpoint = { revoke } as unknown as RevocationEndpoint;
  const revocations = new Revocations(endpoint, (id, action) => void events.push(`${id} ${action}`));
  const decide = async () => {
    asked.push(performance.now() - began);
    const decision = decisions?.shift() ?? 'ask again';
    if (decision instanceof Error) throw decision;
    return decision;
  };
  revocations.start('id', TOKENS, decisions && decide);
  return { revocations, asked, tried, events };
}

const down = (retryAfter?: number) => new ServiceUnavailableError('down', { retryAfter });
const storeDown = new TokenStoreError('down');
const refused = new TokenError('refused', { error: 'invalid_client' });

test.for<[what: string, answers: Error[], tried: number[], event: string]>([
  ['that the service takes', [], [0], 'id revoked'],
  ['that the service refuses', [refused], [0], 'id revocation-failed'],
  ['is tried again while the service is down', [down(), down(), down()], [0, 250, 1_250, 5_250], 'id revoked'],
  ['is tried four times', [down(), down(), down(), down()], [0, 250, 1_250, 5_250], 'id revocation-failed'],
  ['is tried again until the service refuses it', [down(), refused], [0, 250], 'id revocation-failed'],
  ['waits as the service says', [down(2), down(1)], [0, 2_000, 3_000], 'id revoked'],
  ['waits no shorter than without a word of the service', [down(), down(0)], [0, 250, 1_250], 'id revoked'],
  ['waits half a minute at most', [down(90)], [0, 30_000], 'id revoked'],
])('a revocation %s', async ([, answers, tried, event]) => {
  const made = open(answers);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(made).toMatchObject({ tried, events: [event] });
});

test.for<
  [what: string, decisions: (Decision | Error)[], answers: Error[], asked: number[], tried: number[], event?: string]
>([
  ['decides once', ['revoke', 'keep'], [down()], [0], [0, 250], 'id revoked'],
  ['is asked until it decides', ['ask again', 'revoke'], [down()], [0, 250], [250, 1_250], 'id revoked'],
  ['may keep them', ['keep'], [], [0], []],
  ['may keep them later', ['ask again', 'ask again', 'keep'], [], [0, 250, 1_250], []],
  ['is asked four times', [], [], [0, 250, 1_250, 5_250], []],
  [
    'may decide the last time',
    Array(3).fill('ask again').concat('revoke'),
    [],
    [0, 250, 1_250, 5_250],
    [5_250],
    'id revoked',
  ],
  ['is asked again while its store is down', [storeDown, 'revoke'], [], [0, 250], [250], 'id revoked'],
  ['fails otherwise', [new Error('a bug')], [], [0], [], 'id revocation-failed'],
])('what is asked whether to revoke tokens %s', async ([, decisions, answers, asked, tried, event]) => {
  const made = open(answers, decisions);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(made).toMatchObject({ asked, tried, events: event ? [event] : [] });
});

test('close() makes the further tries at once, and waits for them', async () => {
  const { revocations, tried, events } = open([down(), down(9), down()]);
  await vi.advanceTimersByTimeAsync(100);
  await revocations.close();
  expect([tried, events]).toEqual([[0, 100, 100, 100], ['id revoked']]);
});

test('close() waits five seconds for an answer', async () => {
  const { opened, open: answer } = gate();
  const { revocations, events } = open([opened]);
  await vi.advanceTimersByTimeAsync(0);
  const closed = vi.fn();
  void revocations.close().then(closed);
  await vi.advanceTimersByTimeAsync(4_999);
  expect(closed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(closed).toHaveBeenCalledWith(undefined);
  answer();
  await vi.advanceTimersByTimeAsync(0);
  expect(events).toEqual(['id revoked']);
  await revocations.close();
});
