import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';

/**
 * Returns the error for a request of a framework whose requests and responses are not Node's, or `undefined`.
 *
 * @param response As the framework has given it
 */
export function frameworkError(req: IncomingMessage, response: unknown): ConfigurationError | undefined {
  const isNodes =
    typeof response === 'object' &&
    response !== null &&
    ['appendHeader', 'setHeader', 'end'].every((method) => typeof Reflect.get(response, method) === 'function');
  if (isNodes) return undefined;
  const isFastify = typeof req === 'object' && req !== null && 'raw' in req;
  return new ConfigurationError(
    isFastify
      ? 'Fastify: @fastify/passport hands over neither request nor response of Node. Use @fastify/express, and mount express-session, passport and this package there as in Express.'
      : 'Koa, or another framework that hands over no response of Node: use koa-connect, and mount express-session, passport and this package with it as in Connect. koa-passport does not work.',
    { code: 'ERR_FRAMEWORK' },
  );
}

/** Reports to a framework that this package cannot work in it: by `next`, or by throwing if the framework has none. */
export function refuseFramework(req: IncomingMessage, response: unknown, next: unknown): boolean {
  const error = frameworkError(req, response);
  if (!error) return false;
  if (typeof next !== 'function') throw error;
  next(error);
  return true;
}

/** Waits for a method that takes a callback, or returns a promise, or does both. Rejects with its error. */
export function settle(call: (done: (error?: unknown) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error?: unknown) => (error ? reject(error) : resolve());
    whenSettled(call(done), done);
  });
}

/** Calls `done` when a value that a method returned is a promise, of any library, and settles. */
export function whenSettled(returned: unknown, done: (error?: unknown) => void): void {
  if (typeof returned !== 'object' || returned === null || !('then' in returned)) return;
  Promise.resolve(returned).then(
    () => done(),
    (error: unknown) => done(error || new Error('A promise was rejected without a reason')),
  );
}
