import { parseGrant, serializeGrant } from './stored-grant.js';
import type { StoredGrant, TokenStore } from './token-store.js';

/**
 * A token store in this process' memory, with all five methods. For tests: it forgets everything when the process
 * ends, never expires anything, and its lock knows nothing of other processes.
 *
 * What it gives out and takes in are copies, by way of JSON, as with a store across a network.
 */
export function memoryTokenStore(): Required<TokenStore> {
  // Held by the closures below and by nothing else: inspecting the store shows no grant.
  const grants = new Map<string, string>();
  const read = (id: string): StoredGrant | undefined => parseGrant(grants.get(id) ?? '');
  return {
    get: async (id) => read(id),
    set: async (id, grant) => {
      grants.set(id, serializeGrant(grant));
    },
    delete: async (id) => {
      grants.delete(id);
    },
    update: async (id, grant, version) => {
      if (read(id)?.version !== version) return false;
      grants.set(id, serializeGrant(grant));
      return true;
    },
    lock: memoryLock(),
  };
}

/** A lock in which each caller waits for the one before it, whatever came of that one's work. */
function memoryLock(): <T>(id: string, work: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<void>>();
  return async (id, work) => {
    const result = (tails.get(id) ?? Promise.resolve()).then(work);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    tails.set(id, ended);
    try {
      return await result;
    } finally {
      if (tails.get(id) === ended) tails.delete(id);
    }
  };
}
