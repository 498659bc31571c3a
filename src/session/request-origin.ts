import type { IncomingMessage } from 'node:http';

/** What Express adds to a request. */
interface WithExpress {
  readonly protocol?: unknown;
  readonly app?: { get?: (setting: string) => unknown };
}

/** Returns true if the browser's connection is encrypted, as far as Express' `trust proxy` setting shows. */
export function isSecure(req: IncomingMessage & WithExpress): boolean {
  return typeof req.protocol === 'string'
    ? req.protocol === 'https'
    : 'encrypted' in req.socket && req.socket.encrypted === true;
}

/** Returns host name and port that the browser requested; `undefined` if the request names none that is well-formed. */
export function hostOf(req: IncomingMessage): string | undefined {
  const authority = req.headers[':authority'];
  const host = forwarded(req, 'x-forwarded-host') || req.headers.host || authority;
  if (typeof host !== 'string' || !/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? host : undefined;
}

/** Returns the front of the path that a trusted proxy has stripped; empty without one. */
export function forwardedPrefix(req: IncomingMessage): string {
  const prefix = forwarded(req, 'x-forwarded-prefix')?.replace(/\/$/, '');
  return prefix && /^\/[\w.~/-]*$/.test(prefix) ? prefix : '';
}

/** Returns the first value of a header, if Express trusts the proxy that sent it. */
function forwarded(req: IncomingMessage & WithExpress, header: string): string | undefined {
  const value = req.headers[header];
  const trusts = value === undefined ? undefined : req.app?.get?.('trust proxy fn');
  if (typeof trusts !== 'function' || !trusts(req.socket.remoteAddress, 0)) return undefined;
  return String(value).split(',')[0]?.trim();
}
