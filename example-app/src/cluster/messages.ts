import type { StrategyOptions } from 'passport-oauth-app';
import type { Breakage } from '../incidents/breakable-store.js';
import type { ServiceFault } from '../incidents/service-faults.js';
import type { BurstOrder } from '../panel/burst.js';
import type { Happening } from '../panel/happening.js';
import type { Entry } from '../panel/journal.js';

/** The settings of a worker. */
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
  | { readonly kind: 'store'; readonly broken: Breakage }
  /** To be answered by `burst-done`. */
  | { readonly kind: 'burst'; readonly grantId: string; readonly order: BurstOrder }
  /** The answer to `fault`, `store` and `burst`. */
  | { readonly kind: 'done'; readonly id: string }
  | { readonly kind: 'end' };

/** From a worker to the primary process. */
export type ToPrimary =
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'happening'; readonly happening: Happening }
  /** To be answered by `done`. */
  | { readonly kind: 'fault'; readonly id: string; readonly fault: ServiceFault; readonly userId: string | undefined }
  /** Breaks the token store of all processes. To be answered by `done`. */
  | { readonly kind: 'store'; readonly id: string; readonly broken: Breakage }
  /** Wants a burst from all processes together. To be answered by `done`. */
  | { readonly kind: 'burst'; readonly id: string; readonly grantId: string; readonly order: BurstOrder }
  | { readonly kind: 'burst-done'; readonly burst: string };
