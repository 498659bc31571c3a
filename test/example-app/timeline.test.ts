import { describe, expect, it } from 'vitest';
import { burstSentence, latestBurst } from '../../example-app/src/panel/burst.js';

import { type Happening, Journal, type Story } from '../../example-app/src/panel/journal.js';
import { timelineOf } from '../../example-app/src/panel/timeline.js';
import type { ApiEvent, RefreshEvent } from '../../src/index.js';

const common = { strategy: 's', grantId: 'g', durationMs: 10 };
const here = (at: number) => ({ at, pid: 1, cause: undefined });

const login = (at: number): Happening => ({ kind: 'login', event: { ...common, outcome: 'success' }, ...here(at) });
const lost = (at: number): Happening => ({ kind: 'grant-lost', event: { ...common, reason: 'refused' }, ...here(at) });
const refresh = (at: number, event: Pick<RefreshEvent, 'trigger' | 'outcome'> & Partial<RefreshEvent>): Happening => ({
  kind: 'refresh',
  event: { ...common, ...event },
  ...here(at),
});
const refreshed = (at: number, trigger: RefreshEvent['trigger'] = 'ahead') =>
  refresh(at, { trigger, outcome: 'refreshed' });
const failed = (at: number, trigger: RefreshEvent['trigger']) =>
  refresh(at, { trigger, outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' });
const call = (at: number, event: Partial<ApiEvent>, number = 1): Happening => ({
  kind: 'api',
  event: { ...common, method: 'GET', path: '/projects', attempts: 1, ...event },
  ...here(at),
  cause: { userId: '1', call: { burst: 'b', number } },
});

/** The story of a grant to which this has happened. */
function storyOf(happenings: readonly Happening[]): Story {
  const journal = new Journal();
  for (const happening of happenings) journal.add({ ...happening, grantId: 'g', requests: [] });
  return journal.of('g');
}

describe('the timeline', () => {
  it('keeps the token in use where a refresh ahead of its expiry has failed', () => {
    const timeline = timelineOf(storyOf([login(1000), failed(20_000, 'ahead')]), 60_000);
    expect(timeline.tokens).toEqual([{ number: 1, from: 1000, to: 60_000 }]);
    expect(timeline.hasToken).toBe(true);
  });

  it('goes back 100 seconds and no further', () => {
    const { tokens, apiCalls } = timelineOf(
      storyOf([login(1000), call(2000, { status: 200 }), refreshed(150_000)]),
      200_000,
    );
    expect(tokens).toEqual([
      { number: 1, from: 100_000, to: 150_000 },
      { number: 2, from: 150_000, to: 200_000 },
    ]);
    expect(apiCalls).toEqual([]);
  });

  it('shows the token of a login that lies further back than the journal', () => {
    const calls = Array.from({ length: 500 }, (_, index) => call(2000 + index, { status: 200 }));
    const { tokens } = timelineOf(storyOf([login(1000), ...calls]), 3000);
    expect(tokens.at(-1)?.to).toBe(3000);
  });
});

describe('the burst', () => {
  it('counts calls that failed, and logins that were lost', () => {
    const story = storyOf([
      login(1000),
      lost(2005),
      call(2010, { reason: 'ERR_NOT_AUTHORIZED' }),
      call(2012, { status: 200 }, 2),
    ]);
    const burst = latestBurst(story.entries);
    expect(burst && burstSentence(burst)).toBe(
      '0 waited, 0 refreshes, 1 × the user is logged out, 1 × 200, 1 lost login',
    );
  });

  it('is not there before its first call has ended', () => {
    expect(latestBurst(storyOf([login(1000)]).entries)).toBeUndefined();
  });
});
