import type { LookupAddress } from 'node:dns';
import { lookupHost } from '../http/http-client.js';
import { type AllowedHosts, isPrivate } from './allowed-hosts.js';

/** Returns a lookup that finds no private address of a host, unless the host is allowed by its name: names may be rebound. */
export function guardedLookup(hosts: AllowedHosts): typeof lookupHost {
  return function lookupPublic(hostname, options, callback) {
    if (hosts.mayBePrivate(hostname)) return lookupHost(hostname, options, callback);
    lookupHost(hostname, options, (fault, found, family) => {
      const addresses: readonly LookupAddress[] = typeof found === 'string' ? [{ address: found, family: 0 }] : found;
      if (fault === null && addresses.some(({ address }) => isPrivate(address)))
        callback(Object.assign(new Error('The host leads to a private network'), { code: 'EACCES' }), '');
      else callback(fault, found, family);
    });
  };
}
