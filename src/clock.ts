/** How far the clocks of two hosts may differ, in milliseconds. */
export const CLOCK_SKEW_MS: number = 60_000;

/**
 * Returns the milliseconds until `end`: 0 once it passed, and 0 if the clock was set back, which would make the wait longer than
 * `longestMs`. Add {@link CLOCK_SKEW_MS} to that where another host may have set the end.
 */
export function remainingMs(end: number, now: number, longestMs: number): number {
  const leftMs = end - now;
  return leftMs > 0 && leftMs <= longestMs ? leftMs : 0;
}

/** Returns true if `since`, noted by any host, was at most `maxAgeMs` ago. */
export function isRecent(since: number, maxAgeMs: number, now: number): boolean {
  return remainingMs(since + maxAgeMs, now, maxAgeMs + CLOCK_SKEW_MS) > 0;
}

/** A wall clock that was set back by less is still trusted, in milliseconds: NTP does so. */
const SET_BACK_MS = 1_000;

/** A moment on both clocks, in milliseconds: the monotonic one stops while some machines are suspended; the wall clock may be set. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** Infinitely long ago. */
export const LONG_AGO: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** Returns the current moment, or an earlier one. */
export function momentOf(clock: () => number, agoMs = 0): Moment {
  return { monotonic: performance.now() - agoMs, wall: clock() - agoMs };
}

/**
 * Returns the milliseconds since a moment, on the clock that shows more; infinite once the wall clock was set back, which hides a
 * suspension. @param clock Default: the monotonic clock alone counts.
 */
export function ageOf({ monotonic, wall }: Moment, clock?: () => number): number {
  const ageMs = performance.now() - monotonic;
  if (!clock) return ageMs;
  const wallAgeMs = clock() - wall;
  return wallAgeMs < ageMs - SET_BACK_MS ? Number.POSITIVE_INFINITY : Math.max(ageMs, wallAgeMs);
}
