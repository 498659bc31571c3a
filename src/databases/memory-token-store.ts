import { isMark, parseGrant, type StoredGrant, type TokenStore } from '../stores/token-store.js';
import { KeyedQueue } from '../waiting.js';

/**
 * Returns a token store in the memory of this process, with all methods. For tests: its grants end with the
 * process and never expire, and its lock does not exclude other processes.
 *
 * It stores and returns copies, by way of JSON, like a store across a network.
 */
export function memoryTokenStore(): Required<TokenStore> {
  // In the closures below and nowhere else: inspecting the store shows no grant.
  const grants = new Map<string, string>();
  const locks = new KeyedQueue();
  const watchers = new Set<(id: string, version?: number) => void>();
  const notify = (id: string, version?: number): void => {
    for (const changed of watchers) changed(id, version);
  };
  const read = (id: string): StoredGrant | undefined => parseGrant(grants.get(id) ?? '');
  const write = (id: string, grant: StoredGrant): void => void grants.set(id, JSON.stringify(grant));
  return {
    get: async (id) => read(id),
    set: async (id, grant) => {
      write(id, grant);
      notify(id, grant.version);
    },
    delete: async (id, version) => {
      if (version !== undefined && read(id)?.version !== version) return;
      if (grants.delete(id)) notify(id);
    },
    update: async (id, grant, version) => {
      if (read(id)?.version !== version) return false;
      write(id, grant);
      if (grant.version === version) notify(id);
      return true;
    },
    add: async (id, grant) => {
      if (grants.has(id)) return false;
      write(id, grant);
      notify(id, grant.version);
      return true;
    },
    lock: (id, work) => locks.run(id, work),
    list: async function* (prefix = '') {
      for (const id of grants.keys()) if (id.startsWith(prefix) && !isMark(id)) yield id;
    },
    watch: (changed) => {
      const watcher: typeof changed = (...change) => changed(...change);
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}
