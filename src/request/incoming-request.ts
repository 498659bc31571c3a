import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';

/** What Passport and Express add to a request that this package makes use of where it is there. */
interface ExpressLike {
  readonly originalUrl?: unknown;
  readonly protocol?: unknown;
  readonly _userProperty?: unknown;
  readonly app?: { get?: (setting: string) => unknown };
}

/** Path and query as the browser asked for them, wherever the handler is mounted. */
export function originalUrl(req: IncomingMessage & ExpressLike): string {
  return typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '/');
}

/** The path alone. */
export function originalPath(req: IncomingMessage): string {
  const url = originalUrl(req);
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** A path as routers compare it, unless they are told otherwise: in any case, with or without a slash at the end. */
export function asRouted(path: string): string {
  return path.toLowerCase().replace(/\/$/, '');
}

/** The path of a `callbackURL`, as routers compare it; a relative one is resolved against the request's own. */
export function routedPathOf(callbackURL: string, req: IncomingMessage): string {
  const path = originalPath(req);
  // A request line may hold a whole URL.
  return asRouted(new URL(callbackURL, `http://here.invalid${path.startsWith('/') ? path : '/'}`).pathname);
}

/**
 * Whether a request has come in the clear, from this computer, under one of its own names, and through no proxy that says
 * so: from a test of the application.
 */
export function isFromThisComputer({ headers, socket, httpVersion }: IncomingMessage): boolean {
  // A proxy may say nothing of itself: nginx does so unless it is told, and speaks HTTP/1.0 then.
  if (process.env.NODE_ENV === 'production' || httpVersion === '1.0') return false;
  if ('encrypted' in socket && socket.encrypted) return false;
  if (Object.keys(headers).some((name) => /^(?:via|forwarded|x-forwarded-.*|x-real-ip)$/.test(name))) return false;
  const isOwnName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(headers.host ?? '');
  return isOwnName && /^(?:(?:::ffff:)?127\.|::1$)/.test(socket.remoteAddress ?? '');
}

/** The user whom Passport has logged in, under the name that `passport.initialize({ userProperty })` may have given. */
export function userOf(req: IncomingMessage & ExpressLike): unknown {
  return Reflect.get(req, typeof req._userProperty === 'string' ? req._userProperty : 'user');
}

/** Whether the browser's connection is encrypted, as far as Express' trust proxy setting lets it be known. */
export function isSecure(req: IncomingMessage & ExpressLike): boolean {
  return typeof req.protocol === 'string'
    ? req.protocol === 'https'
    : 'encrypted' in req.socket && req.socket.encrypted === true;
}

/**
 * The redirect URL of a login: `callbackURL` as it is if it is absolute, else resolved against the request.
 *
 * `X-Forwarded-Host` counts only where Express trusts the proxy that sent it.
 *
 * @throws ConfigurationError if the request has no usable host
 */
export function redirectUriFor(req: IncomingMessage & ExpressLike, callbackURL: string): string {
  if (isAbsolute(callbackURL)) return callbackURL;
  const base = baseOf(req);
  const path = originalUrl(req);
  // A request line may hold a whole URL, or a path that a URL parser takes for a host.
  return new URL(callbackURL, path.startsWith('/') ? `${base}${path}` : base).href;
}

/** Whether a `callbackURL` is the same for all requests. */
export function isAbsolute(callbackURL: string): boolean {
  return /^https?:/i.test(callbackURL);
}

function baseOf(req: IncomingMessage & ExpressLike): string {
  const host = forwardedHost(req) ?? req.headers.host ?? '';
  const base = `${isSecure(req) ? 'https' : 'http'}://${host}`;
  if (/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host) && URL.canParse(base)) return base;
  throw new ConfigurationError(
    'callbackURL: is relative, and the request names no usable host to resolve it against. Set an absolute URL.',
    {
      option: 'callbackURL',
    },
  );
}

function forwardedHost(req: IncomingMessage & ExpressLike): string | undefined {
  const trusts = req.app?.get?.('trust proxy fn');
  const forwarded = req.headers['x-forwarded-host'];
  if (typeof trusts !== 'function' || forwarded === undefined || !trusts(req.socket.remoteAddress, 0)) return undefined;
  return String(forwarded).split(',')[0]?.trim();
}
