import type { ServerResponse } from 'node:http';
import { HeaderBudget } from './header-budget.js';
import { cookieSettingsOf, isForFrames } from './session.js';
import type { Visit } from './visit.js';

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const HOST_PREFIX = '__Host-';

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/**
 * Sets a cookie of visible ASCII. Ends it, and returns false, if the response or the browser has no room for the value.
 *
 * @param location Characters of the address that the response redirects to.
 */
export function setCookie(
  visit: Visit,
  res: ServerResponse,
  name: string,
  value: string,
  maxAgeS: number,
  location = 0,
): boolean {
  const encoded = value.replace(/[%;,"=]/g, encodeURIComponent);
  const former = visit.cookie(name)?.length ?? 0;
  const hasRoom = new HeaderBudget(visit, res, location).hasRoomFor(name, encoded.length, -former);
  if (hasRoom) appendCookie(visit, res, `${name}=${encoded}; Max-Age=${maxAgeS}`);
  else endCookie(visit, res, name);
  return hasRoom;
}

/** Ends a cookie in the browser. */
export function endCookie(visit: Visit, res: ServerResponse, name: string): void {
  appendCookie(visit, res, `${name}=; Max-Age=0`);
}

function appendCookie(visit: Visit, res: ServerResponse, cookie: string): void {
  res.appendHeader('Set-Cookie', cookie + cookieAttributes(visit.req, visit.isSecure));
}

/**
 * Returns the attributes of a cookie of this package. They follow those of the session: if its cookie is made for frames of
 * other sites, so are these. `Lax` otherwise: a callback is a navigation from another site.
 *
 * @see RFC 6265bis, 5.6.7; https://datatracker.ietf.org/doc/draft-cutler-httpbis-partitioned-cookies/
 */
export function cookieAttributes(req: Visit['req'], isSecure: boolean): string {
  const always = '; Path=/; HttpOnly; SameSite=';
  if (!isForFrames(req)) return `${always}Lax${isSecure ? '; Secure' : ''}`;
  return `${always}None; Secure${cookieSettingsOf(req).partitioned === true ? '; Partitioned' : ''}`;
}
