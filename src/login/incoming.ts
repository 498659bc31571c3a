import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';

/** What Express adds to a request that this package makes use of where it is there. */
interface ExpressLike {
  readonly originalUrl?: unknown;
  readonly protocol?: unknown;
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
  if (/^https?:/i.test(callbackURL)) return callbackURL;
  const base = `${isSecure(req) ? 'https' : 'http'}://${hostOf(req)}`;
  const path = originalUrl(req);
  // A request line may hold a whole URL, or a path that a URL parser takes for a host.
  return new URL(callbackURL, new URL(path.startsWith('/') ? `${base}${path}` : base)).href;
}

function hostOf(req: IncomingMessage & ExpressLike): string {
  const host = forwardedHost(req) ?? req.headers.host;
  if (host !== undefined && /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) return host;
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
