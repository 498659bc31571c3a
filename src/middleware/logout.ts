import type { IncomingMessage } from 'node:http';
import { readOptions } from '../checks.js';
import { closedError, ofStrategy } from '../errors.js';
import { passportRecordOf, polyfillSessionMethods, sessionOf, settleInStore, userOf } from '../session/session.js';
import { refuseOldPassport, Visit } from '../session/visit.js';
import type { Runtime } from '../strategy/runtime.js';
import { runtimeOf, type Strategy } from '../strategy/strategy.js';
import { type Handler, type ManyStrategies, manyHandlers, refuseFramework } from './api-client.js';

/**
 * Creates middleware that deletes the request's grant, ends the Passport login, and calls the next handler. A request with
 * neither passes. If the grant cannot be deleted, the login ends nevertheless, and the error goes to `next`.
 *
 * @throws ConfigurationError unless `strategy` is a Strategy of this package; for any option: it has none
 */
export function logout(strategy: Strategy | ManyStrategies): Handler;
export function logout(strategy: Strategy | ManyStrategies, options?: unknown): Handler {
  // `strategies.map(logout)` passes an index.
  if (typeof options === 'object') readOptions('logout(strategy)', options, {});
  const many = manyHandlers.get(strategy);
  if (many) return many.logout();
  const runtime = runtimeOf(strategy);
  return function logOut(req, res, next) {
    if (refuseFramework(req, res, next, runtime.settings.name)) return;
    runtime.clients.logoutRoutes.add(req);
    // Whoever logs out was logged in: no login was lost.
    runtime.returns.reset(new Visit(req), res);
    endLogin(runtime, req).then(
      () => next(),
      (error: unknown) => next(ofStrategy(error, runtime.settings.name)),
    );
  };
}

async function endLogin(runtime: Runtime, req: IncomingMessage): Promise<void> {
  // The login ends even if the grant cannot be deleted.
  const [removal] = await Promise.allSettled([removeGrant(runtime, req)]);
  const isLoggedIn = Boolean(userOf(req)) || passportRecordOf(req) !== undefined;
  // A visitor without a login would get a new session, whose cookie would replace the one that a form of another site left out.
  if (isLoggedIn || removal.status === 'rejected' || removal.value) await endPassportLogin(req);
  if (removal.status === 'rejected') throw removal.reason;
}

/** Returns false if there is no grant to remove. */
async function removeGrant({ settings, managers, grants, clients }: Runtime, req: IncomingMessage): Promise<boolean> {
  const current = grants.referenceOf(req) ?? grants.idOf(req);
  const session = sessionOf(req);
  if (session) delete session[settings.name];
  // The logout of another strategy may have emptied the session: the client still knows the grant.
  const attached = clients.end(req);
  const grantId = current ?? attached;
  if (managers.isClosed) throw closedError();
  if (grantId === undefined) return false;
  await managers.for(req).remove(grantId);
  return true;
}

/** Ends the Passport login of the request's session. @throws TokenStoreError if the store of the sessions fails */
export async function endPassportLogin(req: IncomingMessage): Promise<void> {
  const logOut: unknown = Reflect.get(req, 'logOut');
  const session = sessionOf(req);
  if (!session) return;
  if (typeof logOut !== 'function') {
    // Passport's middleware has not run for this request, but it would find the user in the next one.
    delete session.passport;
    return;
  }
  refuseOldPassport(req);
  polyfillSessionMethods(session, false);
  await settleInStore(logOut.bind(req));
}
