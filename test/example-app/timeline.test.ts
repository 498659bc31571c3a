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
  it('gives each token a number of its own, from when it came to when the next one came', () => {
    const { tokens } = timelineOf(storyOf([login(1000), refreshed(40_000)]), 60_000);
    expect(tokens).toEqual([
      { number: 1, from: 1000, to: 40_000 },
      { number: 2, from: 40_000, to: 60_000 },
    ]);
  });

  it('shows no token from when it was refused until the refresh has ended', () => {
    const slow = refresh(23_000, { trigger: 'refused', outcome: 'refreshed', durationMs: 3000 });
    const { tokens, outages } = timelineOf(storyOf([login(1000), slow]), 60_000);
    expect(tokens.map(({ from, to }) => [from, to])).toEqual([
      [1000, 20_000],
      [23_000, 60_000],
    ]);
    expect(outages).toEqual([]);
  });

  it('shows an outage from the first refresh that failed to the next one that did not', () => {
    const story = storyOf([
      login(1000),
      failed(20_010, 'refused'),
      failed(25_000, 'refused'),
      refreshed(30_000, 'refused'),
    ]);
    expect(timelineOf(story, 60_000).outages).toEqual([{ from: 20_000, to: 30_000 }]);
    expect(timelineOf(story, 60_000).tokenRequests.map(({ good }) => good)).toEqual([true, false, false, true]);
    expect(story.recovered).toBe(true);
  });

  it('shows an outage that has not ended up to now, and that there is no token', () => {
    const timeline = timelineOf(storyOf([login(1000), failed(20_010, 'expired')]), 60_000);
    expect(timeline.outages).toEqual([{ from: 20_000, to: 60_000 }]);
    expect(timeline.hasToken).toBe(false);
  });

  it('keeps the token in use where a refresh ahead of its expiry has failed', () => {
    const timeline = timelineOf(storyOf([login(1000), failed(20_000, 'ahead')]), 60_000);
    expect(timeline.tokens).toEqual([{ number: 1, from: 1000, to: 60_000 }]);
    expect(timeline.hasToken).toBe(true);
  });

  it('draws a token once that another process has got, and one that is saved later', () => {
    const story = storyOf([
      login(1000),
      refreshed(20_000, 'refused'),
      refresh(20_020, { trigger: 'refused', outcome: 'adopted', durationMs: 200 }),
      refresh(25_000, { trigger: 'refused', outcome: 'saved', durationMs: 0 }),
    ]);
    const { tokens, tokenRequests, hasToken } = timelineOf(story, 60_000);
    expect(tokens.map(({ number }) => number)).toEqual([1, 2]);
    expect(tokenRequests).toHaveLength(2);
    expect(hasToken).toBe(true);
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

  it('ends the last token with the grant', () => {
    const timeline = timelineOf(storyOf([login(1000), lost(30_000)]), 60_000);
    expect(timeline.tokens).toEqual([{ number: 1, from: 1000, to: 30_000 }]);
    expect(timeline.hasToken).toBe(false);
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

  it('takes several events of one call as one call', () => {
    const story = storyOf([
      call(2000, { status: 401 }),
      refreshed(2030, 'refused'),
      call(2040, { status: 200, durationMs: 5 }),
    ]);
    const burst = latestBurst(story.entries);
    expect(burst?.rows).toHaveLength(1);
    expect(burst && burstSentence(burst)).toBe('1 waited, 1 refresh, 1 × 200, 0 lost logins');
  });

  it('is not there before its first call has ended', () => {
    expect(latestBurst(storyOf([login(1000)]).entries)).toBeUndefined();
  });
});
