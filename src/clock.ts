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

/**
 * Returns true if the wall clock was set back during a time that both clocks measured, in milliseconds. That time may then
 * hide a suspension that neither clock shows.
 */
export function wasSetBack(monotonicMs: number, wallMs: number): boolean {
  return wallMs < monotonicMs - SET_BACK_MS;
}

/** A moment on both clocks, in milliseconds: the monotonic one stands still while some machines are suspended, the wall clock may be set. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** A moment that is infinitely long ago. */
export const LONG_AGO: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** Returns the current moment. @param clock Epoch milliseconds */
export function momentOf(clock: () => number): Moment {
  return { monotonic: performance.now(), wall: clock() };
}
