import type { IncomingMessage } from 'node:http';
import { parse } from 'cookie';
import { MAX_COOKIE_HEADER } from '../request/browser-cookie.js';

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
const HOST_PREFIX = '__Host-';

/** The name of a pending login's cookie, of any strategy. */
const LOGIN_COOKIE = /^(?:__Host-)?[\w%-]+\.login\.[\w-]{16}$/;

/** Most logins that one browser can have pending. Beyond it the oldest ends. */
const MAX_PENDING = 12;

/** Logins that may begin at once, each with a page of up to 500 characters. */
const TABS = 8;

/** Characters of a cookie that holds a page of 500 characters. */
const TYPICAL_COOKIE = 800;

/** A cookie up to this length keeps its page while there is room, whatever may follow. */
const MAX_FREE_COOKIE = 1_000;

/** Characters of a cookie that holds no page. */
const BARE_COOKIE = 220;

/** Most cookies that one response ends. A sibling host can plant hundreds; many proxies would not pass their ends on. */
const MAX_ENDED = 32;

/** Returns the name of a pending login's cookie. The prefix for https keeps sibling hosts from planting one. */
export function loginCookieName(token: string, id: string, redirectUri: string): string {
  return `${/^https:/i.test(redirectUri) ? HOST_PREFIX : ''}${token}.login.${id}`;
}

/** Returns the `Set-Cookie` line of a pending login. `Lax`: the callback is a navigation from another site. */
export function loginCookie(name: string, value: string, maxAgeMs: number): string {
  const secure = name.startsWith(HOST_PREFIX) ? '; Secure' : '';
  return `${name}=${value}; Max-Age=${maxAgeMs / 1000}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

/** Returns the `Set-Cookie` line that ends a pending login. */
export function endedLoginCookie(name: string): string {
  return loginCookie(name, '', 0);
}

/**
 * Chooses the value of one more login's cookie, and ends the oldest pending logins if there is no room for it.
 *
 * The whole `Cookie` header counts, since Node and proxies would refuse every request of the browser: cookies of other strategies and of other software as well.
 *
 * @param full The value that holds the page to return to
 * @param bare The value without that page, for a header that has no room for it
 * @returns `Set-Cookie` lines
 */
export function loginCookies(
  req: IncomingMessage,
  name: string,
  full: string,
  bare: string,
  maxAgeMs: number,
): readonly string[] {
  const header = req.headers.cookie ?? '';
  const hasHostPrefix = name.startsWith(HOST_PREFIX);
  const pending = Object.entries(parse(header))
    // Any sibling host can plant a cookie without the prefix: with https such cookies are not ours.
    .filter(([other]) => LOGIN_COOKIE.test(other) && other.startsWith(HOST_PREFIX) === hasHostPrefix)
    .sort(([, a], [, b]) => issuedAt(a) - issuedAt(b));
  let room = MAX_COOKIE_HEADER - header.length;
  const reserved = Math.max(
    (TABS - pending.length - 1) * TYPICAL_COOKIE,
    (MAX_PENDING - pending.length - 1) * BARE_COOKIE,
    0,
  );
  const fullLength = pairLength(name, full);
  const leavesRoom = fullLength <= MAX_FREE_COOKIE || fullLength <= room - reserved;
  const value = fullLength <= room && leavesRoom ? full : bare;
  const ended: string[] = [];
  for (const [oldest, content] of pending) {
    const isFull = pending.length - ended.length >= MAX_PENDING || pairLength(name, value) > room;
    if (!isFull || ended.length === MAX_ENDED) break;
    ended.push(endedLoginCookie(oldest));
    room += pairLength(oldest, content ?? '');
  }
  return [loginCookie(name, value, maxAgeMs), ...ended];
}

/** Returns the time at which a pending login began, in epoch milliseconds; 0 if the value has none. */
export function issuedAt(value: string | undefined): number {
  return Number.parseInt(value ?? '', 36) || 0;
}

function pairLength(name: string, value: string): number {
  return name.length + value.length + '=; '.length;
}
