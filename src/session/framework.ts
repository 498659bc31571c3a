import { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, ofStrategy } from '../errors.js';

/**
 * Returns the error for a framework whose requests or responses are not Node's, or `undefined`. Fastify's hooks may get the
 * one without the other.
 *
 * @param req As the framework has given it
 * @param response As the framework has given it
 */
export function frameworkError(req: IncomingMessage, response: unknown): ConfigurationError | undefined {
  const isFastify = typeof req === 'object' && req !== null && 'raw' in req && req.raw !== req;
  const isObject = typeof response === 'object' && response !== null;
  const missing = ['appendHeader', 'setHeader', 'end'].filter(
    (method) => !isObject || typeof Reflect.get(response, method) !== 'function',
  );
  if (!isFastify && missing.length === 0) return undefined;
  return new ConfigurationError(
    isFastify
      ? 'Fastify: @fastify/passport hands over neither request nor response of Node. Use @fastify/express, and mount express-session, passport and this package there as in Express.'
      : `Expected a response of Node, got ${isObject ? `an object without ${missing.join(', ')}` : String(response)}. In Koa use koa-connect, and mount express-session, passport and this package with it as in Connect: koa-passport does not work. A double in a unit test needs these methods, as those of node-mocks-http have.`,
    { code: 'ERR_FRAMEWORK' },
  );
}

/**
 * Reports to a framework that this package cannot work in it: by `next`, or by throwing if the framework has none.
 *
 * @param strategyName Named in the error.
 */
export function refuseFramework(
  req: IncomingMessage,
  response: unknown,
  next: unknown,
  strategyName: string | undefined,
): boolean {
  // Node's own, with whatever prototype Express has put in front: no more to look at in nearly all requests.
  if (response instanceof ServerResponse && req instanceof IncomingMessage) return false;
  const error = ofStrategy(frameworkError(req, response), strategyName);
  if (!error) return false;
  if (typeof next !== 'function') throw error;
  next(error);
  return true;
}

/**
 * Throws if the request's Passport is older than 0.6: its `logOut` takes no callback, so whoever waits for one would hang.
 *
 * @throws ConfigurationError
 */
export function refuseOldPassport(req: IncomingMessage): void {
  const member = (of: unknown, name: string): unknown => Object(of)[name];
  const manager = member(req, '_sessionManager') ?? member(member(member(req, '_passport'), 'instance'), '_sm');
  const logOut = member(manager, 'logOut');
  if (typeof logOut !== 'function' || logOut.length !== 2) return;
  throw new ConfigurationError(
    "Passport is older than 0.6, so its req.logOut() takes no callback and would never end. Install passport@0.7; the application's own req.logout() then needs a callback.",
  );
}
