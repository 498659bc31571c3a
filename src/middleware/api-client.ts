import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Optional, readOptions, withDefault, wrong } from '../checks.js';
import { refuseFramework } from '../request/incoming-request.js';
import { runtimeOf, type Strategy } from '../strategy.js';

/** A handler that Express 4, Express 5 and Connect all accept. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Options of {@link apiClient}. */
export interface ApiClientOptions {
  /** Name of the request property that receives the client. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/** Reads the name of the request property that holds the client. */
export const clientProperty: Optional<string> = withDefault('apiClient', (option, value) => {
  if (typeof value === 'string' && value !== '') return value;
  throw wrong(option, 'expected the name of a request property');
});

/**
 * Creates middleware that finds the request's grant, refreshes it if it is due, and attaches an `ApiClient`.
 *
 * It always attaches a client. Without a usable grant, the client's calls reject with the reason.
 * Mount it after the session and Passport, and before the routes of login and callback.
 *
 * @throws ConfigurationError unless `strategy` is a Strategy of this package and `property` is a name; for an unknown option
 */
export function apiClient(strategy: Strategy, options: ApiClientOptions = {}): Handler {
  const { clients } = runtimeOf(strategy);
  const { property } = readOptions('apiClient(strategy, options)', options, { property: clientProperty });
  return function attachApiClient(req, res, next) {
    if (refuseFramework(req, res, next)) return;
    const pending = clients.attach(req, res, property);
    if (pending === undefined) next();
    else pending.then(next);
  };
}
