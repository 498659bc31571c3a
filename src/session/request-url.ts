import type { IncomingMessage } from 'node:http';

/** A `callbackURL` that is the same for all requests. */
export const ABSOLUTE_URL: RegExp = /^https?:/i;

/** Returns path and query as the browser requested them, wherever the handler is mounted. */
export function originalUrl(req: IncomingMessage & { readonly originalUrl?: unknown }): string {
  return typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '/');
}

/** Returns the path of a URL that begins with its path. */
export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

/** Returns the parsed query of a URL. Connect parses none, and Express parses lists and objects out of it. */
export function queryOf(url: string): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
}

/** Returns the parameters of a URL's query in their order. Most hold no escapes and need no parser. */
export function parametersOf(url: string): Iterable<readonly [name: string, value: string]> {
  const start = url.indexOf('?');
  if (start < 0 || !/^[!-$&-*,->@-~]*$/.test(url.slice(start + 1))) return queryOf(url);
  const pairs: [string, string][] = [];
  for (const part of url.slice(start + 1).split('&')) {
    const equals = part.indexOf('=');
    if (part !== '') pairs.push(equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)]);
  }
  return pairs;
}

/** Returns a path as routers compare it by default: case-insensitive, with or without a slash at the end. */
export function asRouted(path: string): string {
  return path.toLowerCase().replace(/\/$/, '');
}

/** Returns the routed path of a `callbackURL`. A relative one is resolved against the path of the request. */
export function routedPathOf(callbackURL: string, path: string): string {
  // A request line may hold a whole URL.
  return asRouted(new URL(callbackURL, `http://relative.invalid${path.startsWith('/') ? path : '/'}`).pathname);
}
