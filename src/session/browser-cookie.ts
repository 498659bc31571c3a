import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseCookie } from 'cookie';
import { isSecure } from './incoming-request.js';
import { cookieSettingsOf, isForFrames } from './session.js';

/** Maximum number of characters of a browser's `Cookie` header: many proxies refuse a header above 8 KB. A session cookie still has to fit in. */
export const MAX_COOKIE_HEADER = 7_800;

/**
 * Maximum number of characters that this package adds to the headers of one response. nginx answers 502 where all headers
 * are longer than its buffer, 4 KB by default; the application adds its own. Browsers keep cookies of up to 4,096 bytes.
 */
export const MAX_RESPONSE_HEADERS = 2_800;

/** Characters of a line of `Set-Cookie` around name and value: its attributes, and the header's name. */
export const SET_COOKIE_LENGTH = 90;

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const HOST_PREFIX = '__Host-';

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/** Returns the value of a cookie, decoded; of several with one name the first. */
export function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const { cookie = '' } = headers;
  return cookie.includes(name) ? parseCookie(cookie)[name] : undefined;
}

/**
 * Sets a cookie of visible ASCII. Ends it, and returns false, if the response, or the browser, has no room for the value.
 *
 * @param used Characters that other headers of this package take in the response.
 */
export function setCookie(
  req: IncomingMessage,
  res: ServerResponse,
  name: string,
  value: string,
  maxAgeS: number,
  used = 0,
): boolean {
  const encoded = value.replace(/[%;,"=]/g, encodeURIComponent);
  const length = name.length + encoded.length + 1;
  const others = (req.headers.cookie ?? '').length - (readCookie(req, name)?.length ?? 0);
  // The response may set others, such as the scopes of a page and the page to return to.
  const set = cookieLines(res).reduce((sum, line) => sum + lengthOf(line), 0);
  const hasRoom =
    length <= MAX_RESPONSE_HEADERS - SET_COOKIE_LENGTH - used && others + set + length <= MAX_COOKIE_HEADER;
  if (hasRoom) appendCookie(req, res, `${name}=${encoded}; Max-Age=${maxAgeS}`);
  else endCookie(req, res, name);
  return hasRoom;
}

/** Returns the lines of `Set-Cookie` that a response has so far; none for a double in a unit test, which may lack the method. */
export function cookieLines(res: Partial<ServerResponse>): readonly string[] {
  return [res.getHeader?.('Set-Cookie') ?? []].flat().map(String);
}

/** Returns the characters that a line of `Set-Cookie` adds to the browser's `Cookie` header. */
function lengthOf(line: string): number {
  return /; Max-Age=0\b/i.test(line) ? 0 : line.split(';', 1).join().length + '; '.length;
}

/** Ends a cookie in the browser. */
export function endCookie(req: IncomingMessage, res: ServerResponse, name: string): void {
  appendCookie(req, res, `${name}=; Max-Age=0`);
}

function appendCookie(req: IncomingMessage, res: ServerResponse, cookie: string): void {
  res.appendHeader('Set-Cookie', cookie + cookieAttributes(req, isSecure(req)));
}

/**
 * Returns the attributes of a cookie of this package. They follow those of the session: where its cookie is made for frames
 * of other sites, so are these. `Lax` otherwise: a callback is a navigation from another site.
 *
 * @see RFC 6265bis, 5.6.7; https://datatracker.ietf.org/doc/draft-cutler-httpbis-partitioned-cookies/
 */
export function cookieAttributes(req: IncomingMessage, isSecure: boolean): string {
  const always = '; Path=/; HttpOnly; SameSite=';
  if (!isForFrames(req)) return `${always}Lax${isSecure ? '; Secure' : ''}`;
  return `${always}None; Secure${cookieSettingsOf(req).partitioned === true ? '; Partitioned' : ''}`;
}
