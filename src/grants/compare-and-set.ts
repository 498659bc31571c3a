import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import { goesOn, type Write } from './write-queue.js';

/** True once the store has `record`, in place of one of the versions; false if it has another one or none. */
export async function compareAndSet(
  store: TokenStore,
  id: string,
  record: StoredGrant,
  versions: readonly number[],
  write: Write,
): Promise<boolean> {
  for (const version of store.update ? versions : []) {
    goesOn(write);
    if (await store.update?.(id, record, version)) return true;
  }
  const current = await store.get(id);
  // A write that was given up as late, and arrived after all, was this one.
  if (current?.version === record.version) return true;
  if (store.update || !current || !versions.includes(current.version)) return false;
  goesOn(write);
  await store.set(id, record);
  return true;
}
