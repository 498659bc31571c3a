import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import type { IncomingRequest } from './incoming-request.js';

/** How the API base address of an organization names it: in the host, or in the path. */
export type DomainHosts = 'subdomain' | 'path';

/** Address and reach of the service. */
export interface HostsSetting {
  /** The host that it listens on. */
  readonly host: string;
  readonly allowRemote: boolean;
}

const loopback = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Tells if a request may be answered: its host is a loopback name, or other hosts are allowed.
 *
 * Without this check, a page of another site could reach the service by a host name that it resolves to 127.0.0.1 (DNS rebinding).
 */
export function isOwnHost({ host }: IncomingRequest, { host: own, allowRemote }: HostsSetting): boolean {
  const name = hostname(host);
  return allowRemote || name === '' || loopback.test(name) || name === own.toLowerCase();
}

/**
 * Returns the organization that a request names, and its path on the API.
 *
 * The organization is the part of the host before `.api.localhost`, or the segment of a path after `/organizations`, for clients that
 * cannot resolve `*.localhost`. With `allowRemote` it may be any host with `.api.` after the first label.
 */
export function addressedOrganization(
  { path, host }: Pick<IncomingRequest, 'path' | 'host'>,
  { allowRemote }: Pick<HostsSetting, 'allowRemote'>,
): { readonly organization: string | undefined; readonly path: string } {
  const [, inPath, rest = '/'] = /^\/organizations\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (inPath !== undefined) return { organization: inPath.toLowerCase(), path: rest };
  const pattern = allowRemote ? /^(.+?)\.api\.[^.]+(?:\.[^.]+)*$/ : /^(.+)\.api\.localhost$/;
  return { organization: pattern.exec(hostname(host))?.[1], path };
}

/** Returns the host in lower case, without port and final dot. */
function hostname(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/**
 * Resolves `localhost` and `*.localhost` to 127.0.0.1 (RFC 6761, 6.3), and everything else as `dns.lookup` does.
 *
 * Node's own resolver, and with it fetch and axios, does not know `*.localhost` on most systems.
 *
 * @example
 * import { lookup } from 'passport-oauth-app/emulator';
 * http.get('http://acme.api.localhost:4000/api/v2/projects', { lookup, headers });
 * const fetchWithHosts = (url) => undici.fetch(url, { dispatcher: new undici.Agent({ connect: { lookup } }) });
 */
export function lookup(
  host: string,
  options: LookupOptions,
  callback: (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void,
): void {
  if (!/^(.+\.)?localhost\.?$/i.test(host)) {
    systemLookup(host, options, callback);
    return;
  }
  const address = options.family === 6 || options.family === 'IPv6' ? '::1' : '127.0.0.1';
  const family = address === '::1' ? 6 : 4;
  // As dns.lookup: never before the caller has returned.
  setImmediate(() => (options.all ? callback(null, [{ address, family }]) : callback(null, address, family)));
}
