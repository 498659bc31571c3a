import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { refuseFramework } from '../request/framework.js';
import { runtimeOf } from '../runtime.js';
import type { Strategy } from '../strategy.js';

/** A handler that Express 4, Express 5 and Connect all accept. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Options of {@link apiClient}. */
export interface ApiClientOptions {
  /** Name of the request property that receives the client. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/**
 * Creates middleware that finds the request's grant, refreshes it if it is due, and attaches an `ApiClient`.
 *
 * It always attaches a client. Without a usable grant, the client's calls reject with the reason.
 * Mount it after the session and Passport, and before the routes of login and callback.
 *
 * @throws ConfigurationError unless `strategy` is a Strategy of this package and `property` is a name
 */
export function apiClient(strategy: Strategy, { property = 'apiClient' }: ApiClientOptions = {}): Handler {
  const { clients } = runtimeOf(strategy);
  if (typeof property !== 'string' || property === '') {
    throw new ConfigurationError('property: expected the name of a request property', { option: 'property' });
  }
  return function attachApiClient(req, res, next) {
    if (refuseFramework(req, res, next)) return;
    const pending = clients.attach(req, res, property);
    if (pending === undefined) next();
    else pending.then(() => next());
  };
}
