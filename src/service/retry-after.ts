/**
 * The value of a `Retry-After` header in milliseconds from `now`; `undefined` where it says nothing usable.
 *
 * @param value Seconds or an HTTP date; repeated headers count by their first value.
 * @param now Epoch milliseconds.
 * @see RFC 9110, 10.2.3
 */
export function parseRetryAfter(value: string | readonly string[] | undefined, now: number): number | undefined {
  const text = (typeof value === 'object' ? value[0] : value)?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  // Date.parse takes much more than HTTP dates: "-5" is a year for it.
  const at = /^[A-Z][a-z]{2,8}[, ]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
