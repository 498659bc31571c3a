import { KeyedQueue } from './keyed-queue.js';
import { parseGrant, type StoredGrant, type TokenStore } from './token-store.js';

/**
 * Returns a token store in the memory of this process, with all five methods. For tests: its grants end with the
 * process and never expire, and its lock does not exclude other processes.
 *
 * It stores and returns copies, by way of JSON, like a store across a network.
 */
export function memoryTokenStore(): Required<TokenStore> {
  // In the closures below and nowhere else: inspecting the store shows no grant.
  const grants = new Map<string, string>();
  const locks = new KeyedQueue();
  const read = (id: string): StoredGrant | undefined => parseGrant(grants.get(id) ?? '');
  return {
    get: async (id) => read(id),
    set: async (id, grant) => {
      grants.set(id, JSON.stringify(grant));
    },
    delete: async (id, version) => {
      if (version === undefined || read(id)?.version === version) grants.delete(id);
    },
    update: async (id, grant, version) => {
      if (read(id)?.version !== version) return false;
      grants.set(id, JSON.stringify(grant));
      return true;
    },
    lock: (id, work) => locks.run(id, work),
  };
}
