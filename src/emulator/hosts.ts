import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { EmulatorError } from './checks.js';
import type { IncomingRequest } from './messages.js';

/** The place of the organization in its API base address: the host, or the path. */
export type DomainHosts = 'subdomain' | 'path';

/** Address and reach of the service. */
export interface HostsSetting {
  /** The host that it listens on. */
  readonly host: string;
  readonly allowRemote: boolean;
}

const loopback = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Returns true for a host that no other site can have: a loopback name, the host that the service listens on or, with
 * `allowRemote`, an IP address.
 *
 * Without this check, a page of another site could reach the service by a host name that it resolves to 127.0.0.1 (DNS rebinding).
 * Browsers cannot do that to an address without a name.
 */
export function isOwnHost({ host }: IncomingRequest, { host: own, allowRemote }: HostsSetting): boolean {
  const name = hostname(host);
  const isAddress = isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
  return name === '' || loopback.test(name) || name === own.toLowerCase() || (allowRemote && isAddress);
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

/**
 * Returns the tenant whose host a request is for: `undefined` for the host of the service itself, and `'unknown'` for another name below
 * `localhost` or the service's host.
 */
export function addressedTenant(
  { host }: Pick<IncomingRequest, 'host'>,
  { host: own, tenants }: Pick<HostsSetting, 'host'> & { readonly tenants: ReadonlySet<string> },
): { readonly tenant: string } | 'unknown' | undefined {
  if (tenants.size === 0) return undefined;
  const [, label] = /^([^.]+)\.(.+)$/.exec(hostname(host)) ?? [];
  const parent = hostname(host).slice((label?.length ?? 0) + 1);
  if (label === undefined || (parent !== 'localhost' && parent !== own.toLowerCase())) return undefined;
  return tenants.has(label) ? { tenant: label } : 'unknown';
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

/** Address and certificate of the server. */
export interface ListenerSetting {
  readonly port: number;
  /** A loopback host, or any other one for clients on other computers. */
  readonly host: string;
  readonly https: Pick<TlsOptions, 'key' | 'cert'> | undefined;
}

/** Servers that listen on one port. */
export interface Listener {
  readonly port: number;
  /** Closes all connections and frees the port. */
  readonly close: () => Promise<void>;
}

/**
 * Listens on IPv4 loopback and, where the computer has it, on IPv6 loopback with the same port: `localhost` and `*.localhost` may
 * resolve to either. Any other host is listened on alone.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_PORT` if the port is taken or not allowed; `ERR_EMULATOR_OPTION` if the certificate cannot be used.
 */
export async function listen(handler: RequestListener, setting: ListenerSetting): Promise<Listener> {
  const first = setting.host === 'localhost' ? '127.0.0.1' : setting.host;
  const isLoopback = first === '::1' || first.startsWith('127.');
  if (!isLoopback) return startServer(handler, setting, first, setting.port);
  const second = first === '::1' ? '127.0.0.1' : '::1';
  for (let attempt = 1; ; attempt += 1) {
    const one = await startServer(handler, setting, first, setting.port);
    try {
      const other = await startServer(handler, setting, second, one.port);
      const close = async () => void (await Promise.all([one.close(), other.close()]));
      return { port: one.port, close };
    } catch (error) {
      // Any other error means that the computer does not have the second address family.
      if (!(error instanceof EmulatorError && isTaken(error.cause))) return one;
      await one.close();
      // A port that is free in one family may be taken in the other. With port 0, another one is tried.
      if (setting.port !== 0 || attempt === 10) throw error;
    }
  }
}

async function startServer(
  handler: RequestListener,
  { https }: ListenerSetting,
  host: string,
  port: number,
): Promise<Listener> {
  const server = createHttpServer(handler, https);
  // Longer than clients keep an idle connection, so none is closed just as a request is sent on it.
  server.keepAliveTimeout = 120_000;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { port: await bind(server, host, port), close };
}

function createHttpServer(handler: RequestListener, https: ListenerSetting['https']): Server {
  if (https === undefined) return createServer(handler);
  try {
    return createTlsServer({ ...https }, handler);
  } catch (cause) {
    throw new EmulatorError('https must hold a private key and its certificate in PEM, but they cannot be used.', {
      code: 'ERR_EMULATOR_OPTION',
      option: 'https',
      cause,
    });
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = isTaken(cause)
        ? `Port ${port} is in use. Stop the other program, or choose another port (0 picks a free one).`
        : `The emulator cannot listen on port ${port}: ${cause.message}.`;
      reject(new EmulatorError(message, { code: 'ERR_EMULATOR_PORT', option: 'port', cause }));
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

const ADDRESS_OPTIONS = [
  ...['authUrl', 'baseUrl', 'enterpriseBaseUrl', 'authorizationPath', 'tokenPath', 'revocationPath', 'origins'],
];

/** Makes the check of a strategy's options: it returns one with an address of another service, and what is wrong with it. */
export function foreignAddressFinder(
  emulator: string,
): (options: Readonly<Record<string, unknown>>) => readonly [option: string, problem: string] | undefined {
  const { hostname } = new URL(emulator);
  return (options) => {
    const { enterpriseHosts = [] } = options;
    const addresses = [
      ...ADDRESS_OPTIONS.flatMap((option) =>
        [options[option]].flat().map((address) => [option, `${address}`] as const),
      ),
      ...[enterpriseHosts]
        .flat()
        .map((host) => ['enterpriseHosts', `https://${String(host).replace('*', 'organization')}`] as const),
    ];
    for (const [option, address] of addresses) {
      const url = /^https?:/i.test(address) ? new URL(address.replace('{domain}', 'organization')) : undefined;
      if (!url || loopback.test(url.hostname) || `.${url.hostname}`.endsWith(`.${hostname}`)) continue;
      const expected = `expected an address of the emulator, got ${url.origin}`;
      return [
        option,
        `${expected}: these options are spread over those of service.options. Spread service.options last`,
      ];
    }
    return undefined;
  };
}
