import type { Span, Timeline } from './timeline.js';

const outage = { from: 62_000, to: 80_000 };
const isIn = ({ from, to }: Span, at: number) => at >= from && at < to;
const refresh = (at: number, token: number) => ({ from: at, to: at, good: true, token, title: 'Refresh' });

/** Shown to visitors who have not logged in: two tokens, an outage, and the token after it. */
export const sampleTimeline: Timeline = {
  from: 0,
  to: 100_000,
  tokens: [
    { number: 1, from: 3_000, to: 36_000 },
    { number: 2, from: 36_000, to: outage.from },
    { number: 3, from: outage.to, to: 100_000 },
  ],
  outages: [outage],
  tokenRequests: [
    refresh(3_000, 1),
    refresh(36_000, 2),
    ...[62_000, 66_000, 73_000].map((at) => ({ from: at, to: at, good: false, title: 'Refresh' })),
    refresh(outage.to, 3),
  ],
  apiCalls: Array.from({ length: 24 }, (_, index) => {
    const at = 5_000 + index * 4_000;
    return { from: at, to: at, good: !isIn(outage, at), title: 'GET /projects' };
  }),
  hasToken: true,
};
