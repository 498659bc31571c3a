import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { wrong } from '../checks.js';
import { ConfigurationError } from '../errors.js';

/** A host name, or all names below one, with the port that an address has to have. */
interface HostPattern {
  readonly name: string;
  readonly isWildcard: boolean;
  readonly port: string;
}

const EXPECTED = "expected a list of host names, such as ['acme.zendesk.com', '*.myshopify.com']";

/** The hosts that the addresses of tenants may have. */
export class AllowedHosts {
  readonly #patterns: readonly HostPattern[];

  private constructor(patterns: readonly HostPattern[]) {
    this.#patterns = patterns;
  }

  /** Reads the option `allowedHosts`. @throws ConfigurationError */
  static read(option: string, value: unknown): AllowedHosts {
    if (!Array.isArray(value) || value.length === 0) throw wrong(option, EXPECTED);
    return new AllowedHosts(value.map((entry: unknown) => patternOf(option, entry)));
  }

  /** The domain of all patterns, if they have one: a name and the names below it. */
  get domain(): string | undefined {
    const [domain, ...others] = new Set(this.#patterns.map(({ name, port }) => `${name}:${port}`));
    return others.length === 0 ? domain : undefined;
  }

  /**
   * Throws if an address is outside, or is of this machine or a private network without being listed by its name.
   *
   * @throws ConfigurationError with the code `ERR_TENANT_HOST`
   */
  check(option: string, address: string): void {
    const url = new URL(address);
    const host = nameOf(url.hostname);
    const isBare = url.username === '' && url.password === '';
    if (isBare && this.#matches(host, url.port) && (this.#isTrusted(host) || !isLocal(host))) return;
    throw refused(option, `${host}${url.port === '' ? '' : `:${url.port}`}`);
  }

  /**
   * Throws if the name of an allowed address leads to this machine or a private network, unless it is listed exactly. A name
   * that cannot be resolved is left to the request.
   *
   * @throws ConfigurationError with the code `ERR_TENANT_HOST`
   */
  async checkAddresses(option: string, address: string): Promise<void> {
    const host = nameOf(new URL(address).hostname);
    if (this.#isTrusted(host) || isIP(bare(host)) !== 0) return;
    const found = await lookup(host, { all: true }).catch(() => []);
    if (found.some((one) => isPrivate(one.address))) throw refused(option, `${host}, which leads to a private network`);
  }

  /** Returns true if connections to a host may lead to any address. */
  mayBePrivate(host: string): boolean {
    return this.#isTrusted(nameOf(host));
  }

  #matches(host: string, port: string): boolean {
    return this.#patterns.some((pattern) => {
      if (pattern.port !== port) return false;
      return pattern.isWildcard ? isIP(bare(host)) === 0 && host.endsWith(`.${pattern.name}`) : host === pattern.name;
    });
  }

  #isTrusted(host: string): boolean {
    return host.endsWith('.localhost') || this.#patterns.some(({ name, isWildcard }) => !isWildcard && name === host);
  }
}

function patternOf(option: string, value: unknown): HostPattern {
  if (typeof value !== 'string') throw wrong(option, EXPECTED);
  const isWildcard = value.startsWith('*.');
  const host = isWildcard ? value.slice(2) : value;
  const url = URL.canParse(`https://${host}`) ? new URL(`https://${host}`) : undefined;
  const isHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host);
  if (!url || !isHost || (isWildcard && isIP(bare(url.hostname)) !== 0)) throw wrong(option, EXPECTED);
  return { name: nameOf(url.hostname), isWildcard, port: url.port };
}

/** Returns a host without the final dot, which is no part of a name. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}

/** Returns an IPv6 address without brackets. */
function bare(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

function isLocal(host: string): boolean {
  return /(?:^|\.)localhost$/.test(host) || isPrivate(bare(host));
}

const privateAddresses = new BlockList();
for (const [address, bits] of [
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
  ] as const),
  ...([
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['224.0.0.0', 3],
  ] as const),
])
  privateAddresses.addSubnet(address, bits, 'ipv4');
for (const [address, bits] of [
  ...([
    ['::', 127],
    ['64:ff9b:1::', 48],
    ['fc00::', 7],
    ['fe80::', 10],
    ['fec0::', 10],
    ['ff00::', 8],
  ] as const),
])
  privateAddresses.addSubnet(address, bits, 'ipv6');

/** Returns true for an IP address of this machine, of a private network, or of none. */
export function isPrivate(address: string): boolean {
  const family = isIP(address);
  // A mapped address (::ffff:10.0.0.1) is checked as the IPv4 address that it stands for.
  return family !== 0 && privateAddresses.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

function refused(option: string, host: string): ConfigurationError {
  return new ConfigurationError(
    `${option}: the host ${host} is not one of allowedHosts, so nothing was sent. Private addresses have to be listed exactly.`,
    { option, code: 'ERR_TENANT_HOST' },
  );
}
