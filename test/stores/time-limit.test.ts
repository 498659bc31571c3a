import { afterEach, expect, test, vi } from 'vitest';
import { withTimeout } from '../../src/stores/time-limit.js';

afterEach(() => vi.restoreAllMocks());

const late = () => new Error('late');

test('a promise that takes too long is rejected with the error of the time limit', async () => {
  await expect(withTimeout(new Promise(() => {}), 1, late)).rejects.toThrow('late');
});

test('after a suspension, an answer that has arrived meanwhile counts', async () => {
  vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(40_000);
  const answer = new Promise((resolve) => setTimeout(() => setImmediate(resolve, 'the answer'), 1));
  await expect(withTimeout(answer, 1, late)).resolves.toBe('the answer');
});

test('after a suspension, an answer that has not arrived is waited for no longer', async () => {
  vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(40_000);
  await expect(withTimeout(new Promise(() => {}), 1, late)).rejects.toThrow('late');
});
