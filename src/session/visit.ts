import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { parseCookie } from 'cookie';
import { ConfigurationError } from '../errors.js';

/** The cookies of a request by name, decoded; of several with one name the first. */
export type Cookies = Readonly<Record<string, string | undefined>>;

/** What Express adds to a request. */
interface WithExpress {
  readonly originalUrl?: unknown;
  readonly protocol?: unknown;
  readonly app?: { get?: (setting: string) => unknown };
}

/**
 * A request, as the rules read it. Each part is made out when a rule asks for it; only the parsed cookies are kept, which many
 * rules ask for.
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

  constructor(req: IncomingMessage & WithExpress) {
    this.req = req;
    this.headers = req.headers;
    this.url = typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '/');
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

  /** Connect parses none, and Express parses lists and objects out of it. */
  get query(): URLSearchParams {
    const [, ...query] = this.url.split('?');
    return new URLSearchParams(query.join('?'));
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

  /** Host name and port that the browser requested; `undefined` if the request names none that is well-formed. */
  get host(): string | undefined {
    const host = forwarded(this.req, 'x-forwarded-host') || this.headers.host || this.headers[':authority'];
    if (typeof host !== 'string' || !/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) return undefined;
    return URL.canParse(`http://${host}`) ? host : undefined;
  }
}

/** Returns the path of a URL that begins with its path. */
export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

/** Returns a path as routers compare it by default: case-insensitive, with or without a slash at the end. */
export function asRouted(path: string): string {
  return path.toLowerCase().replace(/\/$/, '');
}

/** Returns the first value of a header, if Express trusts the proxy that sent it. */
function forwarded(req: IncomingMessage & WithExpress, header: string): string | undefined {
  const value = req.headers[header];
  const trusts = value === undefined ? undefined : req.app?.get?.('trust proxy fn');
  if (typeof trusts !== 'function' || !trusts(req.socket.remoteAddress, 0)) return undefined;
  return String(value).split(',')[0]?.trim();
}

/** A standard, what scripts (Turbo) send in its place, and what browsers sent before it. */
const PURPOSE_HEADERS = ['sec-purpose', 'x-sec-purpose', 'purpose', 'x-purpose', 'x-moz'] as const;

/** Returns true if a browser requests the page ahead of time, before the user asks for it. */
export function isPrefetch(headers: IncomingHttpHeaders): boolean {
  for (const name of PURPOSE_HEADERS) {
    const value = headers[name];
    if (value !== undefined && /\b(?:prefetch|prerender|preview)\b/i.test(String(value))) return true;
  }
  return false;
}

/** Returns true if a user waits for a page. A script would follow the redirect to the service's consent page. */
export function isPageRequest(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode === 'navigate' || isInFrame(headers)) return true;
  // A browser sends the destination, too. Node's fetch sends the mode alone: its Accept header decides.
  if (mode !== undefined && headers['sec-fetch-dest'] !== undefined) return false;
  return headers['x-requested-with'] === undefined && /\btext\/html\b/i.test(headers.accept ?? '');
}

/**
 * Returns true if a page of this origin sent the request: the browser says so or, without fetch metadata, the request has a
 * header that no page can send to another origin without its permission (CORS).
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

/** Destinations of requests for a page inside another one (Fetch Standard, 2.2.5). */
const FRAMES: ReadonlySet<unknown> = new Set(['iframe', 'frame', 'embed', 'object']);

/** Returns true if a browser loads the page into a frame. */
export function isInFrame(headers: IncomingHttpHeaders): boolean {
  return FRAMES.has(headers['sec-fetch-dest']);
}

/**
 * Returns the error for a framework whose requests or responses are not Node's, or `undefined`. Fastify's hooks may get one
 * without the other.
 *
 * @param req As the framework passes it
 * @param response As the framework passes it
 */
export function frameworkError(req: IncomingMessage, response: unknown): ConfigurationError | undefined {
  const isFastify = typeof req === 'object' && req !== null && 'raw' in req && req.raw !== req;
  const isObject = typeof response === 'object' && response !== null;
  const missing = ['appendHeader', 'setHeader', 'end'].filter(
    (method) => !isObject || typeof Reflect.get(response, method) !== 'function',
  );
  if (!isFastify && missing.length === 0) return undefined;
  return new ConfigurationError(
    isFastify
      ? 'Fastify: @fastify/passport hands over neither request nor response of Node. Use @fastify/express, and mount express-session, passport and this package there as in Express.'
      : `Expected a response of Node, got ${isObject ? `an object without ${missing.join(', ')}` : String(response)}. In Koa use koa-connect, and mount express-session, passport and this package with it as in Connect: koa-passport does not work. A double in a unit test needs these methods, as those of node-mocks-http have.`,
    { code: 'ERR_FRAMEWORK' },
  );
}

/**
 * Throws if the request's Passport is older than 0.6: its `logOut` takes no callback, so a caller that waits for it would hang.
 *
 * @throws ConfigurationError
 */
export function refuseOldPassport(req: IncomingMessage): void {
  const member = (of: unknown, name: string): unknown => Object(of)[name];
  const manager = member(req, '_sessionManager') ?? member(member(member(req, '_passport'), 'instance'), '_sm');
  const logOut = member(manager, 'logOut');
  if (typeof logOut !== 'function' || logOut.length !== 2) return;
  throw new ConfigurationError(
    "Passport is older than 0.6, so its req.logOut() takes no callback and would never end. Install passport@0.7; the application's own req.logout() then needs a callback.",
  );
}
