import type { StrategyOptions } from 'passport-oauth-app';
import type { Happening } from '../panel/happening.js';
import type { Entry } from '../panel/journal.js';

/** What a worker needs to begin. */
export interface Setup {
  readonly port: number;
  readonly redisUrl: string;
  readonly sessionSecret: string;
  readonly strategyOptions: StrategyOptions;
}

/** From the primary process to a worker. */
export type ToWorker =
  | { readonly kind: 'setup'; readonly setup: Setup }
  | { readonly kind: 'entry'; readonly entry: Entry }
  | { readonly kind: 'expired' }
  | { readonly kind: 'end' };

/** From a worker to the primary process. */
export type ToPrimary =
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'happening'; readonly happening: Happening }
  | { readonly kind: 'expire' };
