/** No answer means a longer wait than this, whatever it says: a day, in milliseconds. */
const LONGEST_MS = 86_400_000;

/** The three forms of a date (RFC 9110, 5.6.7); `Date.parse` alone takes nearly anything. */
const HTTP_DATE =
  /^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

/**
 * Milliseconds that a `Retry-After` header asks to wait, from 0 to a day; `undefined` where there is none, or one
 * that is neither seconds nor a date.
 *
 * @param now Epoch milliseconds, which dates are counted from
 * @see RFC 9110, 10.2.3
 */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  const text = value?.trim();
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_MS);
  if (!HTTP_DATE.test(text)) return undefined;
  // The asctime form names no zone and means GMT.
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : Math.min(Math.max(time - now, 0), LONGEST_MS);
}
