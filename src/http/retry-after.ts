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
  const at = parseHttpDate(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Epoch milliseconds of an HTTP date in any of its three forms (RFC 9110, 5.6.7), else NaN. All are in GMT; asctime does not say so. */
function parseHttpDate(text: string): number {
  // Date.parse takes much more than HTTP dates: "-5" is a year for it.
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return Number.NaN;
  return Date.parse(/\bGMT$/.test(text) ? text : `${text} GMT`);
}
