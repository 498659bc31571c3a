import { endLogin } from '../request/end-login.js';
import { runtimeOf } from '../runtime.js';
import type { Strategy } from '../strategy.js';
import type { Handler } from './api-client.js';

/**
 * Middleware that deletes the request's grant, ends the Passport login, and goes on.
 *
 * If the grant cannot be deleted, the login is ended all the same, and the error goes to `next`.
 *
 * @throws ConfigurationError for anything but a Strategy of this package
 */
export function logout(strategy: Strategy): Handler {
  const runtime = runtimeOf(strategy);
  return function logOut(req, _res, next) {
    endLogin(runtime, req).then(() => next(), next);
  };
}
