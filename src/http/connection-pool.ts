import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns';
import { Agent, type Dispatcher } from 'undici';

/** Most connections to one origin; further requests wait for a free one, within their own limit of time. */
const CONNECTIONS_PER_ORIGIN = 256;

const CONNECT_TIMEOUT_MS = 10_000;

const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

type LookupCallback = (fault: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** A keep-alive pool of our own. This module is to be loaded when the first request is made: undici takes its time. */
export function createConnectionPool(): Dispatcher {
  return new Agent({
    connections: CONNECTIONS_PER_ORIGIN,
    connect: { lookup: lookupHost, timeout: CONNECT_TIMEOUT_MS },
    // Each request has its own limit: see deadlines.ts.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/**
 * `dns.lookup`, but names below `localhost` are loopback addresses and never asked of a name server.
 *
 * @see RFC 6761, 6.3
 */
export function lookupHost(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  if (!isLocalhost(hostname)) {
    lookup(hostname, options, callback);
    return;
  }
  const addresses = LOOPBACK.filter(({ family }) => isWanted(family, options.family));
  const first = addresses[0] ?? { address: '127.0.0.1', family: 4 };
  process.nextTick(() => {
    if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
}

function isLocalhost(hostname: string): boolean {
  return /^(?:.+\.)?localhost\.?$/i.test(hostname);
}

function isWanted(family: number, wanted: LookupOptions['family']): boolean {
  return !wanted || wanted === family || wanted === `IPv${family}`;
}
