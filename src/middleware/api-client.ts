import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { runtimeOf } from '../runtime.js';
import type { Strategy } from '../strategy.js';

/** A handler that Express 4, Express 5 and Connect all take. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Options of {@link apiClient}. */
export interface ApiClientOptions {
  /** The request's property that gets the client. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/**
 * Middleware that finds the request's grant, refreshes it if it is due, and attaches an `ApiClient`. Always attaches
 * one: where there is no grant, or where it cannot be had now, its calls reject with the reason.
 *
 * Stands after the session and Passport, and before the routes of login and callback.
 *
 * @throws ConfigurationError for anything but a Strategy of this package, or a property that is no name
 */
export function apiClient(strategy: Strategy, { property = 'apiClient' }: ApiClientOptions = {}): Handler {
  const { clients } = runtimeOf(strategy);
  if (typeof property !== 'string' || property === '') {
    throw new ConfigurationError('property: expected the name of a property of the request', { option: 'property' });
  }
  return function attachApiClient(req, res, next) {
    const pending = clients.attach(req, res, property);
    if (pending === undefined) next();
    else pending.then(() => next());
  };
}
