import type { World } from './world.js';

/** Returns what the session store of an application holds: the key and the decoded content of each entry. */
export const stored = ({ store }: World): [string, Record<string, unknown>][] =>
  Object.entries(Reflect.get(store, 'sessions') ?? {}).map(([key, text]) => [key, JSON.parse(String(text))]);

/** Returns the grants among it: their keys in the store. */
export const grantKeys = (world: World): string[] =>
  stored(world).flatMap(([key, entry]) => ('grant' in entry ? [key] : []));

/** Returns the references to grants in the sessions of the store. */
export const references = (world: World): string[] =>
  stored(world).flatMap(([, { [world.strategy.name]: reference }]) => (reference ? [String(reference)] : []));
