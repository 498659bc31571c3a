import type { StoredGrant } from './token-store.js';

/** The grant as the JSON text that the stores keep. */
export function serializeGrant(grant: StoredGrant): string {
  return JSON.stringify(grant);
}

/**
 * The grant in `json`, with all its fields; `undefined` for a text that is none. A spoilt record counts as no
 * grant: the next login puts a good one in its place, where an error would stand until its time to live is over.
 */
export function parseGrant(json: string): StoredGrant | undefined {
  try {
    return asStoredGrant(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** `value` if it is a stored grant, whatever further fields it has, else `undefined`. */
export function asStoredGrant(value: unknown): StoredGrant | undefined {
  return isStoredGrant(value) ? value : undefined;
}

function isStoredGrant(value: unknown): value is StoredGrant {
  if (typeof value !== 'object' || value === null) return false;
  if (!('version' in value) || !Number.isSafeInteger(value.version)) return false;
  if (!('expiresAt' in value) || typeof value.expiresAt !== 'number') return false;
  return 'sealed' in value && typeof value.sealed === 'string';
}
