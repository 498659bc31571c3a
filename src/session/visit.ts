import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { parseCookie } from 'cookie';

/** The cookies of a request by name, decoded; of several with one name the first. */
export type Cookies = Readonly<Record<string, string | undefined>>;

/**
 * A request, read once: each part when a rule first needs it.
 *
 * Session and user are not among the parts, since Passport replaces both during a login: see `sessionOf` and `userOf`.
 */
export class Visit {
  readonly req: IncomingMessage & WithExpress;
  readonly headers: IncomingHttpHeaders;
  /** Path and query as the browser requested them, wherever the handler is mounted. */
  readonly url: string;
  /** The header `Cookie`: rules look for a name in it before they have it parsed. */
  readonly cookieHeader: string;
  #cookies: Cookies | undefined;

  constructor(req: IncomingMessage) {
    this.req = req;
    this.headers = req.headers;
    this.url = originalUrl(req);
    this.cookieHeader = req.headers.cookie ?? '';
  }

  /** The path of {@link url}. */
  get path(): string {
    return pathOf(this.url);
  }

  /** Path and query as the browser has them in its address bar: with the prefix that a trusted proxy has stripped. */
  get browserUrl(): string {
    const prefix = forwarded(this.req, 'x-forwarded-prefix')?.replace(/\/$/, '');
    return prefix && /^\/[\w.~/-]*$/.test(prefix) ? prefix + this.url : this.url;
  }

  get query(): URLSearchParams {
    return queryOf(this.url);
  }

  get cookies(): Cookies {
    this.#cookies ??= parseCookie(this.cookieHeader);
    return this.#cookies;
  }

  /** Returns a cookie's value. The header is not parsed for a name that is not in it. */
  cookie(name: string): string | undefined {
    return this.cookieHeader.includes(name) ? this.cookies[name] : undefined;
  }

  /** True if the browser's connection is encrypted, as far as Express' `trust proxy` setting shows. */
  get isSecure(): boolean {
    const { protocol, socket } = this.req;
    return typeof protocol === 'string' ? protocol === 'https' : 'encrypted' in socket && socket.encrypted === true;
  }

  /** Host name and port that the browser requested, if the request names well-formed ones. */
  get host(): string | undefined {
    return hostOf(this.req);
  }
}

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

/** What Express adds to a request. */
interface WithExpress {
  readonly protocol?: unknown;
  readonly app?: { get?: (setting: string) => unknown };
}

/** Returns host name and port that the browser requested; `undefined` if the request names none that is well-formed. */
export function hostOf(req: IncomingMessage): string | undefined {
  const authority = req.headers[':authority'];
  const host = forwarded(req, 'x-forwarded-host') || req.headers.host || authority;
  if (typeof host !== 'string' || !/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? host : undefined;
}

/** Returns the first value of a header, if Express trusts the proxy that sent it. */
function forwarded(req: IncomingMessage & WithExpress, header: string): string | undefined {
  const value = req.headers[header];
  const trusts = value === undefined ? undefined : req.app?.get?.('trust proxy fn');
  if (typeof trusts !== 'function' || !trusts(req.socket.remoteAddress, 0)) return undefined;
  return String(value).split(',')[0]?.trim();
}
