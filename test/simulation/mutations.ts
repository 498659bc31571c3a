import type { Package } from './environment.js';
import type { Parts } from './application.js';

type Options = ConstructorParameters<Package['Strategy']>[0];

/** A deliberate breakage: what a process has in place of a part that works. */
export interface Mutation {
  readonly name: string;
  readonly parts: (parts: Parts) => { readonly store?: object; readonly dispatch?: Parts['dispatch'] };
  readonly options?: Partial<Options>;
}

export const MUTATIONS: readonly Mutation[] = [];
