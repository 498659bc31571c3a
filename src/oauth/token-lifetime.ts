import type { Claims } from './claims.js';

const SHORTEST_GUESS_S = 60;
const MAX_S = 24 * 60 * 60;
/** What is assumed where neither the answer nor the token says how long it lives. */
const DEFAULT_S = 3600;

/**
 * How long an access token is good, in milliseconds: at most 24 hours, and never so short that refreshes chase each other.
 *
 * `expires_in` counts where it is from a second to ten years, as number or numeric string. Else the
 * token's own `exp` does (against its `iat`, which leaves this machine's clock out of it, or against `now`), then an hour.
 *
 * @param now Epoch milliseconds.
 * @see RFC 6749, 5.1; RFC 7519, 4.1.4; service.md, 2
 */
export function tokenLifetime(expiresIn: unknown, claims: Claims, now: number): number {
  const told = secondsOf(expiresIn);
  if (told !== undefined) return Math.min(told, MAX_S) * 1000;
  const { exp, iat } = claims;
  const own = typeof exp === 'number' ? secondsOf(exp - (typeof iat === 'number' ? iat : now / 1000)) : undefined;
  return Math.min(Math.max(own ?? DEFAULT_S, SHORTEST_GUESS_S), MAX_S) * 1000;
}

const TEN_YEARS_S = 10 * 365 * MAX_S;

function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}(\.\d{1,6})?$/.test(value.trim()) ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 1 && seconds <= TEN_YEARS_S ? seconds : undefined;
}
