import type { IncomingHttpHeaders } from 'node:http';

/** A standard, what scripts (Turbo) send in its place, and what browsers sent before it. */
const PURPOSE_HEADERS = ['sec-purpose', 'x-sec-purpose', 'purpose', 'x-purpose', 'x-moz'] as const;

/** Returns true if a browser requests the page ahead of time, before the user has asked for it. */
export function isPrefetch(headers: IncomingHttpHeaders): boolean {
  for (const name of PURPOSE_HEADERS) {
    const value = headers[name];
    if (value !== undefined && /\b(?:prefetch|prerender|preview)\b/i.test(String(value))) return true;
  }
  return false;
}

/** Returns true if a person waits for a page. A script would follow the redirect to the service's consent page. */
export function isPageRequest(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode === 'navigate' || isInFrame(headers)) return true;
  // A browser sends the destination too. Node's fetch sends the mode alone: its Accept header decides.
  if (mode !== undefined && headers['sec-fetch-dest'] !== undefined) return false;
  return headers['x-requested-with'] === undefined && /\btext\/html\b/i.test(headers.accept ?? '');
}

/**
 * Returns true if a page of this origin sent the request: the browser says so or, if it sends no fetch metadata, the request
 * has a header that no page can send to another origin without its permission (CORS).
 *
 * @param host Host name and port that the browser requested.
 * @see https://www.w3.org/TR/fetch-metadata/
 */
export function isSameOrigin(headers: IncomingHttpHeaders, host: string | undefined): boolean {
  const { 'sec-fetch-site': site, 'x-requested-with': requestedWith, origin } = headers;
  if (site !== undefined || !requestedWith) return site === 'same-origin';
  if (origin === undefined) return true;
  const [scheme] = /^https?:\/\//.exec(origin) ?? [];
  if (scheme === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === new URL(scheme + host).host;
}

/**
 * Returns true if a script sent the request: it cannot follow a redirect to the service. A service worker that passes on the
 * navigation of a page (`fetch(event.request)`) can.
 */
export function isFetch(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-dest'] === 'empty' && headers['sec-fetch-mode'] !== 'navigate';
}

/** Destinations of requests for a page inside another one (Fetch Standard, 2.2.5). */
const FRAMES: ReadonlySet<unknown> = new Set(['iframe', 'frame', 'embed', 'object']);

/** Returns true if a browser loads the page into a frame. */
export function isInFrame(headers: IncomingHttpHeaders): boolean {
  return FRAMES.has(headers['sec-fetch-dest']);
}

/**
 * Returns true if a browser loads the page into a frame of another site, where cookies are third-party cookies. After a link
 * inside the frame, only `Sec-Fetch-Storage-Access` shows it.
 */
export function isInForeignFrame(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-storage-access': access } = headers;
  return isInFrame(headers) && (site === 'cross-site' || access !== undefined);
}
