/** How far the clocks of several hosts may differ, in milliseconds. */
export const CLOCK_SKEW_MS: number = 60_000;

/**
 * Returns how much is left of a time, in milliseconds; 0 once it has ended. More than it can ever last means that the clock
 * was set back since it began: that counts as ended, or it could last for hours.
 *
 * @param end Epoch milliseconds.
 * @param now Epoch milliseconds.
 * @param longestMs With {@link CLOCK_SKEW_MS} where another host may have set the end.
 */
export function remainingMs(end: number, now: number, longestMs: number): number {
  const leftMs = end - now;
  return leftMs > 0 && leftMs <= longestMs ? leftMs : 0;
}

/** Returns true if a time that any host has noted was at most so many milliseconds ago. @param now Epoch milliseconds, as `since` */
export function isRecent(since: number, maxAgeMs: number, now: number): boolean {
  return remainingMs(since + maxAgeMs, now, maxAgeMs + CLOCK_SKEW_MS) > 0;
}

/** By how much a wall clock may be set back and still tell a time that is of use, in milliseconds: NTP steps it by less. */
const SET_BACK_MS = 1_000;

/**
 * Returns true if the wall clock was set back during a time that both clocks have measured, in milliseconds. A suspension
 * may be in that time then which neither clock shows.
 */
export function wasSetBack(monotonicMs: number, wallMs: number): boolean {
  return wallMs < monotonicMs - SET_BACK_MS;
}
