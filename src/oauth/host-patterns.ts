import net, { type BlockList, isIP } from 'node:net';
import { isDnsLabel, optionError } from '../checks.js';

/** One entry of a list of hosts. */
export interface HostPattern {
  /** As `URL.hostname` returns it. With `isBelow`, the domain that the host is below. */
  readonly host: string;
  readonly isBelow: boolean;
  /** As `URL.port` returns it: empty for the default port. */
  readonly port: string;
}

/** The hosts that may get a token, as an option lists them. */
export class HostPatterns {
  readonly entries: readonly HostPattern[];

  private constructor(entries: readonly HostPattern[]) {
    this.entries = entries;
  }

  /**
   * Reads a list of exact host names, and of `*.` with a domain, for one label or more below it. A port other than the
   * default is part of an entry: `*.example.com:8443`.
   *
   * @throws ConfigurationError that names the option
   */
  static read(option: string, value: unknown): HostPatterns {
    if (!Array.isArray(value) || value.length === 0)
      throw optionError(option, "expected a list of host names, such as ['*.example.com']");
    return new HostPatterns(value.map((entry) => patternOf(option, entry)));
  }

  /** Returns true if a URL has no credentials and leads to one of the hosts. */
  allows(url: URL): boolean {
    if (url.username !== '' || url.password !== '') return false;
    const host = withoutDot(url.hostname);
    return this.entries.some((pattern) => pattern.port === url.port && matches(pattern, host));
  }

  /** Returns true if a host may have any address: it is listed exactly, or below `localhost`. */
  mayBePrivate(hostname: string): boolean {
    const host = withoutDot(hostname);
    return host.endsWith('.localhost') || this.entries.some((pattern) => !pattern.isBelow && pattern.host === host);
  }

  /** Returns true if a listed host must not have an address, because it is private: the owner of a name below a domain may control its DNS. */
  refusesAddress(hostname: string, address: string): boolean {
    const host = withoutDot(hostname);
    const isListed = this.entries.some((pattern) => matches(pattern, host));
    return isListed && !this.mayBePrivate(host) && isPrivateAddress(address);
  }
}

function patternOf(option: string, entry: unknown): HostPattern {
  const [, wildcard, authority = ''] =
    /^(\*\.)?([\w.-]+(?::\d{1,5})?|\[[\da-f:.]+\](?::\d{1,5})?)$/i.exec(typeof entry === 'string' ? entry : '') ?? [];
  // http, as https would drop the port 443; both schemes have their default ports dropped below.
  const url = URL.canParse(`http://${authority}`) ? new URL(`http://${authority}`) : undefined;
  const host = withoutDot(url?.hostname ?? '');
  const isBelow = wildcard !== undefined;
  const isDomain = host.split('.').every(isDnsLabel) && isIP(host) === 0;
  // A wildcard for a whole top-level domain would match any company.
  const isWide = isBelow && host !== 'localhost' && (!isDomain || !host.includes('.'));
  if (host === '' || isWide || (!isDomain && isIP(host.replace(/^\[|\]$/g, '')) === 0)) {
    const expected = "expected host names such as 'api.example.com', '*.example.com' or '*.example.com:8443'";
    throw optionError(option, `${expected}, without scheme and path`);
  }
  const port = url?.port ?? '';
  return { host, isBelow, port: port === '443' ? '' : port };
}

function matches({ host, isBelow }: HostPattern, name: string): boolean {
  if (!isBelow) return name === host;
  const below = name.slice(0, -host.length - 1);
  return name === `${below}.${host}` && below.split('.').every(isDnsLabel);
}

/** Removes the dot at the end of an absolute name. */
function withoutDot(hostname: string): string {
  return hostname.replace(/\.$/, '');
}

/** Networks without public services (RFC 6890). BlockList treats IPv4 addresses that are mapped to IPv6 as IPv4. */
const NETWORKS = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '2002::/16', 'fc00::/7', 'fe80::/10', 'ff00::/8'],
];

let privateNetworks: BlockList | undefined;

/** Returns true for an IP address of this machine, or of a network without public services. */
export function isPrivateAddress(address: string): boolean {
  if (privateNetworks === undefined) {
    // Node loads the class when it is first read.
    privateNetworks = new net.BlockList();
    for (const network of NETWORKS) {
      const [start = '', prefix] = network.split('/');
      privateNetworks.addSubnet(start, Number(prefix), start.includes(':') ? 'ipv6' : 'ipv4');
    }
  }
  const [bare = ''] = address.split('%');
  return privateNetworks.check(bare, isIP(bare) === 6 ? 'ipv6' : 'ipv4');
}
