import type { IncomingMessage } from 'node:http';
import type { Application } from '../application.js';
import { sessionOf } from '../login/session-reference.js';
import { applicationOf, type Strategy } from '../strategy.js';
import type { Handler } from './api-client.js';

/**
 * Middleware that deletes the request's grant, ends the Passport login, and goes on.
 *
 * If the grant cannot be deleted, the login is ended all the same, and the error goes to `next`.
 *
 * @throws ConfigurationError for anything but a Strategy of this package
 */
export function logout(strategy: Strategy): Handler {
  const application = applicationOf(strategy);
  return function logOut(req, _res, next) {
    end(application, req).then(() => next(), next);
  };
}

async function end(application: Application, req: IncomingMessage): Promise<void> {
  // Both are tried, whatever becomes of the other one.
  const [removal, ending] = await Promise.allSettled([removeGrant(application, req)]).then(async (first) => [
    ...first,
    ...(await Promise.allSettled([endPassportLogin(req)])),
  ]);
  for (const result of [removal, ending]) {
    if (result?.status === 'rejected') throw result.reason;
  }
}

async function removeGrant(application: Application, req: IncomingMessage): Promise<void> {
  const grantId = application.grantIdOf(req);
  const session = sessionOf(req);
  if (session) delete session[application.settings.name];
  if (grantId !== undefined) await application.keeperFor(req)?.remove(grantId);
}

function endPassportLogin(req: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    const logOut: unknown = Reflect.get(req, 'logOut');
    if (typeof logOut !== 'function' || !sessionOf(req)) return resolve();
    logOut.call(req, (error: unknown) => (error ? reject(error) : resolve()));
  });
}
