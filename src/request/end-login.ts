import type { IncomingMessage } from 'node:http';
import type { Settings } from '../options.js';
import type { GrantManagers } from '../refresh/grant-managers.js';
import type { RequestGrants } from './grant-reference.js';
import type { RequestClients } from './request-clients.js';
import { polyfillSessionMethods, sessionOf, sessionStoreFailed } from './session.js';

/** What a logout works with, of all that belongs to a strategy. */
export interface LogoutContext {
  readonly settings: Settings;
  readonly managers: GrantManagers;
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
}

/** Deletes the request's grant, and ends the Passport login. @throws whatever kept one of the two from being done */
export async function endLogin(context: LogoutContext, req: IncomingMessage): Promise<void> {
  // The login ends whatever becomes of the grant.
  const failure = await removeGrant(context, req).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  await endPassportLogin(req);
  if (failure) throw failure.error;
}

async function removeGrant(
  { settings, managers, grants, clients }: LogoutContext,
  req: IncomingMessage,
): Promise<void> {
  const current = grants.idOf(req);
  const session = sessionOf(req);
  if (session) delete session[settings.name];
  // The logout of another strategy may have emptied the session already: the client still knows the grant.
  const attached = clients.end(req);
  const grantId = current ?? attached;
  if (grantId !== undefined) await managers.for(req)?.remove(grantId);
}

function endPassportLogin(req: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    const logOut: unknown = Reflect.get(req, 'logOut');
    const session = sessionOf(req);
    if (!session) return resolve();
    if (typeof logOut !== 'function') {
      // Passport has not seen this request; the next one it would take for the user's.
      delete session.passport;
      return resolve();
    }
    polyfillSessionMethods(session, false);
    logOut.call(req, (error: unknown) => (error ? reject(sessionStoreFailed(error)) : resolve()));
  });
}
