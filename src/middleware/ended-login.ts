import type { IncomingMessage } from 'node:http';
import type { Application } from '../application.js';
import { completeSession, sessionOf, sessionStoreFailed } from '../login/session-reference.js';

/** Deletes the request's grant, and ends the Passport login. @throws whatever kept one of the two from being done */
export async function endLogin(application: Application, req: IncomingMessage): Promise<void> {
  // The login ends whatever becomes of the grant.
  const failure = await removeGrant(application, req).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  await endPassportLogin(req);
  if (failure) throw failure.error;
}

async function removeGrant(application: Application, req: IncomingMessage): Promise<void> {
  const grantId = application.grantIdOf(req);
  const session = sessionOf(req);
  if (session) delete session[application.settings.name];
  application.endSource(req);
  if (grantId !== undefined) await application.keeperFor(req)?.remove(grantId);
}

function endPassportLogin(req: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    const logOut: unknown = Reflect.get(req, 'logOut');
    const session = sessionOf(req);
    if (typeof logOut !== 'function' || !session) return resolve();
    completeSession(session, false);
    logOut.call(req, (error: unknown) => (error ? reject(sessionStoreFailed(error)) : resolve()));
  });
}
