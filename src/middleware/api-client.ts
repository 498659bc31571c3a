import { IncomingMessage, ServerResponse } from 'node:http';
import { type Optional, optionError, readOptions, withDefault } from '../checks.js';
import { ofStrategy } from '../errors.js';
import { frameworkError } from '../session/visit.js';
import { runtimeOf, type Strategy } from '../strategy/strategy.js';

/** A handler that Express 4, Express 5 and Connect all accept. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** An object that stands in for many strategies, as `tenants()` returns it: each request has one of them. */
export interface ManyStrategies {
  readonly name: string;
  forget(tenant: string): void;
  close(): Promise<void>;
}

/** Middleware over the strategies of an object that stands in for many. */
export interface ManyHandlers {
  /**
   * Creates middleware that runs that of the request's strategy.
   *
   * @param property Name of the request property that gets a client even if there is no strategy. Default: the error goes to `next`.
   */
  each(create: (strategy: Strategy) => Handler, property?: string): Handler;
  /** Creates middleware that logs the session out of all. */
  logout(): Handler;
}

/** The middleware of each object that stands in for many strategies. */
export const manyHandlers: WeakMap<object, ManyHandlers> = new WeakMap();

/** Options of {@link apiClient}. */
export interface ApiClientOptions {
  /** Name of the request property that receives the client. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/** Reads the name of the request property that holds the client. */
export const clientProperty: Optional<string> = withDefault('apiClient', (option, value) => {
  if (typeof value === 'string' && value !== '') return value;
  throw optionError(option, 'expected the name of a request property');
});

/** Strategies by the property of their clients, for errors of requests that have none; `undefined` where several share it. */
export const strategyNames: Map<string, string | undefined> = new Map();

/**
 * Creates middleware that finds the request's grant, refreshes it if it is due, and attaches an `ApiClient`.
 *
 * It always attaches a client. Without a usable grant, the client's calls reject with the reason.
 * Mount it after the session and Passport, and before the routes of login and callback.
 *
 * @throws ConfigurationError unless `strategy` is a Strategy of this package and `property` is a name; for an unknown option
 */
export function apiClient(strategy: Strategy | ManyStrategies, options: ApiClientOptions = {}): Handler {
  const { property } = readOptions('apiClient(strategy, options)', options, { property: clientProperty });
  const many = manyHandlers.get(strategy);
  if (many) return many.each((one) => apiClient(one, options), property);
  const { clients, settings } = runtimeOf(strategy);
  const isShared = strategyNames.has(property) && strategyNames.get(property) !== settings.name;
  strategyNames.set(property, isShared ? undefined : settings.name);
  return function attachApiClient(req, res, next) {
    if (refuseFramework(req, res, next, settings.name)) return;
    const pending = clients.attach(req, res, property);
    if (pending === undefined) next();
    else pending.then(next);
  };
}

/** Reports to a framework that this package cannot work in it: by `next`, or by throwing if the framework has none. */
export function refuseFramework(
  req: IncomingMessage,
  response: unknown,
  next: unknown,
  strategyName: string | undefined,
): boolean {
  // Node's own, with whatever prototype Express has put in front: nothing else to check in nearly all requests.
  if (response instanceof ServerResponse && req instanceof IncomingMessage) return false;
  const error = ofStrategy(frameworkError(req, response), strategyName);
  if (!error) return false;
  if (typeof next !== 'function') throw error;
  next(error);
  return true;
}
