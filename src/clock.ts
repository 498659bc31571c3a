/** How far the clocks of two hosts may differ, in milliseconds. */
export const CLOCK_SKEW_MS: number = 60_000;

/**
 * Returns the milliseconds left until `end`; 0 once it has passed. More than `longestMs` means that the clock was set back:
 * that returns 0 too, or the wait could last for hours.
 *
 * @param end Epoch milliseconds.
 * @param now Epoch milliseconds.
 * @param longestMs With {@link CLOCK_SKEW_MS} where another host may have set the end.
 */
export function remainingMs(end: number, now: number, longestMs: number): number {
  const leftMs = end - now;
  return leftMs > 0 && leftMs <= longestMs ? leftMs : 0;
}

/** Returns true if `since`, noted by any host, was at most `maxAgeMs` ago. @param now Epoch milliseconds, as `since` */
export function isRecent(since: number, maxAgeMs: number, now: number): boolean {
  return remainingMs(since + maxAgeMs, now, maxAgeMs + CLOCK_SKEW_MS) > 0;
}

/** How far a wall clock may be set back and still be trusted, in milliseconds: NTP steps it by less. */
const SET_BACK_MS = 1_000;

/** A moment on both clocks, in milliseconds: the monotonic one stops while some machines are suspended, the wall clock may be set. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** A moment that is infinitely long ago. */
export const LONG_AGO: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** Returns the current moment, or one before it. @param clock Epoch milliseconds */
export function momentOf(clock: () => number, agoMs = 0): Moment {
  return { monotonic: performance.now() - agoMs, wall: clock() - agoMs };
}

/** How long ago a moment was, in milliseconds. */
export interface Age {
  readonly ageMs: number;
  /** On the wall clock; infinite once it was set back, since a suspension may not show then. */
  readonly wallAgeMs: number;
}

/** Returns how long ago a moment was, on each clock. @param clock Epoch milliseconds, as of the moment */
export function ageOf({ monotonic, wall }: Moment, clock: () => number): Age {
  const [ageMs, wallMs] = [performance.now() - monotonic, clock() - wall];
  return { ageMs, wallAgeMs: wallMs < ageMs - SET_BACK_MS ? Number.POSITIVE_INFINITY : wallMs };
}

/** Returns true if a moment was less than `ms` milliseconds ago, on both clocks. @param clock Epoch milliseconds, as of the moment */
export function isWithin(ms: number, moment: Moment, clock: () => number): boolean {
  const { ageMs, wallAgeMs } = ageOf(moment, clock);
  return ageMs < ms && wallAgeMs < ms;
}
