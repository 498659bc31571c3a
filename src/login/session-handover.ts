import type { IncomingMessage } from 'node:http';
import { safeReturnTo } from './return-to.js';
import { onRegeneration, saveSession, sessionOf } from './session-reference.js';

/** What a login leaves in the session. */
export interface Handover {
  /** The strategy's key under the session. */
  readonly key: string;
  /** Id of the new grant; `undefined` where the application keys grants by its own ids. */
  readonly reference: string | undefined;
  /** Where the login was to lead. Without it the session's own `returnTo` counts. */
  readonly returnTo: string | undefined;
  /** Called when the session could not be written: nobody will ever come back to the grant. */
  readonly onFailure: () => void;
  /** Called with the reference that the session had before, once the new one is saved. */
  readonly onReplaced: (former: unknown) => void;
}

type Done = (error?: unknown) => void;
type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => void;

/** What Passport adds to a request. */
interface PassportRequest {
  logIn?: LogIn;
  login?: LogIn;
}

/** Writes the handover into the session as it is, and saves it: for `passport.authorize`, which logs nobody in. @throws TokenStoreError */
export async function handOverNow(req: IncomingMessage, handover: Handover): Promise<void> {
  const session = sessionOf(req);
  if (!session) return;
  const former = session[handover.key];
  if (handover.reference !== undefined) session[handover.key] = handover.reference;
  if (handover.returnTo !== undefined) session.returnTo = safeReturnTo(handover.returnTo);
  try {
    await saveSession(session);
  } catch (error) {
    if (former === undefined) delete session[handover.key];
    else session[handover.key] = former;
    handover.onFailure();
    throw error;
  }
  handover.onReplaced(former);
}

/**
 * Has the next `req.logIn` that writes a session carry the handover through Passport's regeneration of it, whoever
 * calls that: Passport itself, or the application after `session: false` or in a callback of its own.
 */
export function handOverAtLogIn(req: IncomingMessage & PassportRequest, handover: Handover): void {
  const logIn = req.logIn;
  if (!logIn) return;
  const carrying: LogIn = function logInWithGrant(user, given, callback) {
    const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
    const former = sessionOf(req);
    const target = handover.returnTo ?? former?.returnTo;
    const writesSession = !isSessionless(options);
    if (writesSession) {
      req.logIn = logIn;
      req.login = logIn;
    }
    const formerReference = writesSession ? carry(req, handover) : undefined;
    logIn.call(this, user, options, (error?: unknown) => {
      if (!error) setReturnTo(req, target);
      if (writesSession) error ? handover.onFailure() : handover.onReplaced(formerReference);
      done?.(error);
    });
  };
  req.logIn = carrying;
  req.login = carrying;
}

function carry(req: IncomingMessage, { key, reference }: Handover): unknown {
  const session = sessionOf(req);
  const former = session?.[key];
  if (session) {
    onRegeneration(
      session,
      () => sessionOf(req),
      (written) => {
        if (reference !== undefined) written[key] = reference;
      },
    );
  }
  return former;
}

/** After the save: Passport reads it for its redirect and deletes it, and the session need not be saved once more. */
function setReturnTo(req: IncomingMessage, target: unknown): void {
  const session = sessionOf(req);
  if (session && target !== undefined) session.returnTo = safeReturnTo(target);
}

function isSessionless(options: unknown): boolean {
  return typeof options === 'object' && options !== null && 'session' in options && options.session === false;
}
