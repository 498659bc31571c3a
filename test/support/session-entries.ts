import type { World } from './world.js';

/** Returns what the session store of an application holds: the key and the decoded content of each entry. */
export function stored({ store }: World): [string, Record<string, unknown>][] {
  const sessions = (Reflect.get(store, 'sessions') ?? {}) as Record<string, string>;
  return Object.entries(sessions).map(([key, text]) => [key, JSON.parse(text)]);
}

/** Returns the grants among it: their keys in the store. */
export const grantKeys = (world: World): string[] =>
  stored(world).flatMap(([key, entry]) => ('grant' in entry ? [key] : []));

/** Returns the references to grants in the sessions of the store. */
export function references(world: World): string[] {
  const { name } = world.strategy;
  return stored(world).flatMap(([, entry]) => (name in entry ? [String(entry[name])] : []));
}
