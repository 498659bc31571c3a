import { lookup } from 'node:dns/promises';
import { ConfigurationError } from '../errors.js';
import { HostPatterns, isPrivateAddress } from '../oauth/host-patterns.js';
import { withTimeout } from '../waiting.js';

/** How long the directory waits for a name server, in milliseconds. The connection checks the address again. */
const LOOKUP_MS = 2_000;

/** The hosts that the addresses of tenants may have. */
export class AllowedHosts {
  readonly #hosts: HostPatterns;

  /** As the application has listed them. */
  readonly entries: readonly string[];

  private constructor(entries: readonly string[], hosts: HostPatterns) {
    this.entries = entries;
    this.#hosts = hosts;
  }

  /** Reads the option `allowedHosts`. @throws ConfigurationError */
  static read(option: string, value: unknown): AllowedHosts {
    const hosts = HostPatterns.read(option, value);
    return new AllowedHosts([value].flat().map(String), hosts);
  }

  /** The domain of all patterns, if they have one: a name and the names below it. */
  get domain(): string | undefined {
    const [domain, ...others] = new Set(this.#hosts.entries.map(({ host, port }) => `${host}:${port}`));
    return others.length === 0 ? domain : undefined;
  }

  /**
   * Throws if an address is outside, or is of this machine or a private network without being listed by its name.
   *
   * @throws ConfigurationError with the code `ERR_TENANT_HOST`
   */
  check(option: string, address: string): void {
    const url = new URL(address);
    if (!this.#hosts.allows(url)) throw refusedHost(option, url.host);
  }

  /**
   * Throws if the name of an allowed address leads to this machine or a private network, unless it is listed exactly. A name
   * that cannot be resolved is left to the request.
   *
   * @throws ConfigurationError with the code `ERR_TENANT_HOST`
   */
  async checkAddresses(option: string, address: string): Promise<void> {
    const { hostname } = new URL(address);
    if (this.#hosts.mayBePrivate(hostname)) return;
    const found = await withTimeout(lookup(hostname, { all: true }), LOOKUP_MS, () => new Error()).catch(() => []);
    if (found.some((one) => this.refusesAddress(hostname, one.address)))
      throw refusedHost(option, `${hostname}, which leads to a private network`);
  }

  /** Returns true if no connection to a host may be made at an address. */
  refusesAddress(hostname: string, address: string): boolean {
    return !this.#hosts.mayBePrivate(hostname) && isPrivateAddress(address);
  }
}

function refusedHost(option: string, host: string): ConfigurationError {
  return new ConfigurationError(
    `${option}: the host ${host} is not one of allowedHosts, so nothing was sent. Private addresses have to be listed exactly.`,
    { option, code: 'ERR_TENANT_HOST' },
  );
}
