import { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, ofStrategy } from '../errors.js';

/** Properties that Passport and Express add to a request. */
interface ExpressLike {
  readonly originalUrl?: unknown;
  readonly protocol?: unknown;
  readonly _userProperty?: unknown;
  readonly app?: { get?: (setting: string) => unknown };
}

/** Returns path and query as the browser requested them, wherever the handler is mounted. */
export function originalUrl(req: IncomingMessage & ExpressLike): string {
  return typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '/');
}

/**
 * Returns path and query as the browser has them in its address bar: with the prefix that a proxy has stripped.
 *
 * `X-Forwarded-Prefix` is used only if Express trusts the proxy that sent it.
 */
export function browserUrl(req: IncomingMessage): string {
  const prefix = forwarded(req, 'x-forwarded-prefix')?.replace(/\/$/, '');
  return (prefix && /^\/[\w.~/-]*$/.test(prefix) ? prefix : '') + originalUrl(req);
}

/**
 * The usual names of a page that logs out, for links: a form sends a POST request. Part of a longer name, such as `ssologout` or
 * `logoutAll`, too, but not of other words, such as `catalogOutput` or `designOffice`.
 */
const LOGOUT =
  /(?:log|sign)(?:out(?!put|let|line|look)|off(?!er|ic|set|line|load))|(?<![a-z])(?:logged|signed|log|sign)[-_]?(?:me[-_]?)?(?:out|off)(?![a-z])|(?<![a-z])end[-_]?session(?![a-z])/i;

/** Returns true if the path of a request names a logout: it must neither start a refresh nor wait for one. */
export function namesLogout(req: IncomingMessage): boolean {
  const url = originalUrl(req);
  // Hardly any URL has such a name: the path is not cut out of the others.
  return LOGOUT.test(url) && LOGOUT.test(pathOf(url));
}

/** Returns the path of {@link originalUrl}. */
export function originalPath(req: IncomingMessage): string {
  return pathOf(originalUrl(req));
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

/** Returns the parameters of {@link queryOf} in their order: without a parser if none of them is escaped, as most are not. */
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

/** Returns the routed path of a `callbackURL`. A relative one is resolved against the request. */
export function routedPathOf(callbackURL: string, req: IncomingMessage): string {
  const path = originalPath(req);
  // A request line may hold a whole URL.
  return asRouted(new URL(callbackURL, `http://relative.invalid${path.startsWith('/') ? path : '/'}`).pathname);
}

/** Returns the user whom Passport has logged in. `passport.initialize({ userProperty })` may have renamed the property. */
export function userOf(req: IncomingMessage & ExpressLike): unknown {
  return Reflect.get(req, typeof req._userProperty === 'string' ? req._userProperty : 'user');
}

/** Sets the user of a request, as Passport would. */
export function setUser(req: IncomingMessage & ExpressLike, user: unknown): void {
  Reflect.set(req, typeof req._userProperty === 'string' ? req._userProperty : 'user', user);
}

/** Properties that identify a user, the first that is set: of records, of lean documents (MongoDB), of JWT claims. */
const ID_KEYS = ['id', '_id', 'sub', 'username'] as const;

/**
 * Returns a text that identifies a user, or `undefined` if the user has none of the properties `id`, `_id`, `sub` and
 * `username`. A user that is no object is its own id.
 */
export function userIdOf(user: unknown): string | undefined {
  let id: unknown = user;
  if (typeof user === 'object' && user !== null) {
    for (const key of ID_KEYS) {
      id = Reflect.get(user, key);
      if (id !== undefined && id !== null && id !== '') break;
    }
  }
  if (id === undefined || id === null || id === '') return undefined;
  if (typeof id !== 'object') return String(id);
  const text = JSON.stringify(id);
  // An object that shows nothing of itself would be the same for all users.
  return text === undefined || text === '{}' || text === '[]' ? undefined : text;
}

/** Returns true if the browser's connection is encrypted, as far as Express' `trust proxy` setting allows to know. */
export function isSecure(req: IncomingMessage & ExpressLike): boolean {
  return typeof req.protocol === 'string'
    ? req.protocol === 'https'
    : 'encrypted' in req.socket && req.socket.encrypted === true;
}

/**
 * Returns host name and port that the browser has requested, or `undefined` if the request names none that is well-formed.
 *
 * `X-Forwarded-Host` is used only if Express trusts the proxy that sent it.
 */
export function hostOf(req: IncomingMessage): string | undefined {
  const authority = req.headers[':authority'];
  const host = forwarded(req, 'x-forwarded-host') || req.headers.host || authority;
  if (typeof host !== 'string' || !/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? host : undefined;
}

/** A `callbackURL` that is the same for all requests. */
export const ABSOLUTE_URL: RegExp = /^https?:/i;

/**
 * Returns the redirect URL of a login: `callbackURL` unchanged if it is absolute, else resolved against the request.
 * Returns `undefined` if the request names no host to resolve it against.
 */
export function redirectUriFor(req: IncomingMessage & ExpressLike, callbackURL: string): string | undefined {
  if (ABSOLUTE_URL.test(callbackURL)) return callbackURL;
  const host = hostOf(req);
  if (host === undefined) return undefined;
  const base = `${isSecure(req) ? 'https' : 'http'}://${host}`;
  const path = originalUrl(req);
  // A request line may hold a whole URL, or a path that a URL parser takes for a host.
  return new URL(callbackURL, path.startsWith('/') ? `${base}${path}` : base).href;
}

/** Returns the first value of a header that a trusted proxy has set. */
function forwarded(req: IncomingMessage & ExpressLike, header: string): string | undefined {
  const value = req.headers[header];
  const trusts = value === undefined ? undefined : req.app?.get?.('trust proxy fn');
  if (typeof trusts !== 'function' || !trusts(req.socket.remoteAddress, 0)) return undefined;
  return String(value).split(',')[0]?.trim();
}

/** A standard, what scripts (Turbo) send in its place, and what browsers sent before it. */
const PURPOSE_HEADERS = ['sec-purpose', 'x-sec-purpose', 'purpose', 'x-purpose', 'x-moz'] as const;

/** Returns true if a browser requests the page ahead of time: nobody has asked for it yet. */
export function isPrefetch({ headers }: IncomingMessage): boolean {
  for (const name of PURPOSE_HEADERS) {
    const value = headers[name];
    if (value !== undefined && /\b(?:prefetch|prerender|preview)\b/i.test(String(value))) return true;
  }
  return false;
}

/** Returns true if a person waits for a page. A script would follow the redirect to the service's consent page. */
export function isPageRequest(req: IncomingMessage): boolean {
  const { method, headers } = req;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode === 'navigate' || isInFrame(req)) return true;
  // A browser sends the destination as well. Node's fetch sends the mode alone: its Accept header decides.
  if (mode !== undefined && headers['sec-fetch-dest'] !== undefined) return false;
  return headers['x-requested-with'] === undefined && /\btext\/html\b/i.test(headers.accept ?? '');
}

/**
 * Returns true if a page of this origin has sent the request: the browser says so or, where it says nothing of the kind,
 * the request has a header that no page can send to another origin unless that permits it (CORS).
 *
 * @see https://www.w3.org/TR/fetch-metadata/
 */
export function isOfOwnPage(req: IncomingMessage): boolean {
  const { 'sec-fetch-site': site, 'x-requested-with': requestedWith, origin } = req.headers;
  if (site !== undefined || !requestedWith) return site === 'same-origin';
  if (origin === undefined) return true;
  const [scheme] = /^https?:\/\//.exec(origin) ?? [];
  const host = hostOf(req);
  if (scheme === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === new URL(scheme + host).host;
}

/**
 * Returns true if a script has sent the request: it cannot follow a redirect to the service. A service worker that passes on
 * the navigation of a page (`fetch(event.request)`) can.
 */
export function isOfScript({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-dest'] === 'empty' && headers['sec-fetch-mode'] !== 'navigate';
}

/** Destinations of requests for a page inside another one (Fetch Standard, 2.2.5). */
const FRAMES: ReadonlySet<unknown> = new Set(['iframe', 'frame', 'embed', 'object']);

/** Returns true if a browser says that it loads the page into a frame. */
export function isInFrame({ headers }: IncomingMessage): boolean {
  return FRAMES.has(headers['sec-fetch-dest']);
}

/**
 * Returns true if a browser says that it loads the page into a frame of another site, where cookies are third-party cookies.
 * After a link inside the frame, `Sec-Fetch-Storage-Access` alone says so.
 */
export function isInForeignFrame(req: IncomingMessage): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-storage-access': access } = req.headers;
  return isInFrame(req) && (site === 'cross-site' || access !== undefined);
}

/** Returns a URL as the header `Location` can hold it. */
export function locationOf(url: string): string {
  return url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/** Redirects with 302. Connect's responses have no `redirect` of their own. */
export function redirect(res: ServerResponse, url: string): void {
  res.statusCode = 302;
  res.setHeader('Location', locationOf(url));
  res.setHeader('Content-Length', '0');
  res.end();
}

/**
 * Returns the error for a framework whose requests or responses are not Node's, or `undefined`. Fastify's hooks may get the
 * one without the other.
 *
 * @param req As the framework has given it
 * @param response As the framework has given it
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
 * Reports to a framework that this package cannot work in it: by `next`, or by throwing if the framework has none.
 *
 * @param strategyName Named in the error.
 */
export function refuseFramework(
  req: IncomingMessage,
  response: unknown,
  next: unknown,
  strategyName: string | undefined,
): boolean {
  // Node's own, with whatever prototype Express has put in front: no more to look at in nearly all requests.
  if (response instanceof ServerResponse && req instanceof IncomingMessage) return false;
  const error = ofStrategy(frameworkError(req, response), strategyName);
  if (!error) return false;
  if (typeof next !== 'function') throw error;
  next(error);
  return true;
}

/** Waits for a method that takes a callback, or returns a promise, or does both. Rejects with its error. */
export function settle(call: (done: (error?: unknown) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    callOnce(call, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Calls a method that takes a callback, or returns a promise of any library, or does both. `done` is called by the first of
 * them, once.
 *
 * @returns what the method has returned
 */
export function callOnce(call: (once: (error?: unknown) => void) => unknown, done: (error?: unknown) => void): unknown {
  let isDone = false;
  const once = (error?: unknown) => {
    if (isDone) return;
    isDone = true;
    done(error);
  };
  const returned = call(once);
  if (typeof returned === 'object' && returned !== null && 'then' in returned) {
    Promise.resolve(returned).then(
      () => once(),
      (error: unknown) => once(error || new Error('A promise was rejected without a reason')),
    );
  }
  return returned;
}
