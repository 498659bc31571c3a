import { type HttpHeaders, headerValue } from '../http/message.js';
import type { ApiBase } from './api-base.js';
import { apiPath } from './request-target.js';

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Path and query of where an answer leads, if it may be followed: for GET and HEAD, on the very same origin, below
 * `/api/v2`. Anywhere else the access token must not go.
 *
 * @see RFC 9110, 15.4
 */
export function redirectTarget(
  method: string,
  answer: { readonly status: number; readonly headers: HttpHeaders },
  base: ApiBase,
  currentPath: string,
): string | undefined {
  const location = headerValue(answer.headers, 'location');
  if (location === undefined || !REDIRECTS.has(answer.status) || (method !== 'GET' && method !== 'HEAD'))
    return undefined;
  const current = `${base.origin}${currentPath}`;
  if (!URL.canParse(location, current)) return undefined;
  const { origin, pathname, search, username, password } = new URL(location, current);
  const isNear = origin === base.origin && username === '' && password === '' && pathname.startsWith(`${base.prefix}/`);
  return isNear && isApiPath(pathname.slice(base.prefix.length)) ? `${pathname}${search}` : undefined;
}

function isApiPath(path: string): boolean {
  try {
    apiPath(path);
    return true;
  } catch {
    return false;
  }
}
