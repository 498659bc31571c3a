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
