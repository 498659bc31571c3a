import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'cookie';
import { isSecure } from './incoming-request.js';

/** Most characters of a browser's `Cookie` header: many proxies refuse a header above 8 KB. A session cookie still has to fit in. */
export const MAX_COOKIE_HEADER = 7_800;

/** Most bytes of a cookie that browsers keep (RFC 6265bis, 5.7). They ignore a longer one, and keep the former value. */
const MAX_COOKIE = 4_096;

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/** Returns the value of a cookie, decoded. */
export function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const { cookie = '' } = headers;
  return cookie.includes(name) ? parse(cookie)[name] : undefined;
}

/** Sets a cookie of visible ASCII. Ends it if the browser would not keep the value, or has no room for it. */
export function setCookie(
  req: IncomingMessage,
  res: ServerResponse,
  name: string,
  value: string,
  maxAgeS: number,
): void {
  const encoded = value.replace(/[%;,"=]/g, encodeURIComponent);
  const length = name.length + encoded.length + 1;
  const others = (req.headers.cookie ?? '').length - (readCookie(req, name)?.length ?? 0);
  if (length > MAX_COOKIE || others + length > MAX_COOKIE_HEADER) endCookie(req, res, name);
  else appendCookie(req, res, `${name}=${encoded}; Max-Age=${maxAgeS}`);
}

/** Ends a cookie in the browser. */
export function endCookie(req: IncomingMessage, res: ServerResponse, name: string): void {
  appendCookie(req, res, `${name}=; Max-Age=0`);
}

function appendCookie(req: IncomingMessage, res: ServerResponse, cookie: string): void {
  const secure = isSecure(req) ? '; Secure' : '';
  res.appendHeader('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Lax${secure}`);
}
