import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Strategy } from '../strategy/strategy.js';

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

const handlers = new WeakMap<object, ManyHandlers>();

/** Makes an object one that stands in for many strategies. */
export function standIn(object: ManyStrategies, middleware: ManyHandlers): void {
  handlers.set(object, middleware);
}

/** Returns the middleware of an object that stands in for many strategies; `undefined` for a strategy. */
export function manyOf(strategy: object): ManyHandlers | undefined {
  return handlers.get(strategy);
}
