import type { IncomingMessage } from 'node:http';
import { safeReturnTo } from '../request/return-to.js';
import {
  emptySession,
  onRegeneration,
  polyfillSessionMethods,
  type SessionLike,
  saveSession,
  sessionOf,
} from '../request/session.js';

/** What a login leaves in the session. */
export interface GrantHandoff {
  /** The strategy's key under the session. */
  readonly key: string;
  /** Id of the new grant; `undefined` where the application keys grants by its own ids. */
  readonly reference: string | undefined;
  /** Where the login was to lead. Without it the session's own `returnTo` counts. */
  readonly returnTo: string | undefined;
  /** Called when the session is about to be written. One of the following two comes then. */
  readonly onStart: () => void;
  /** Called with the reference that the session had before, once the new one is saved. */
  readonly onSaved: (former: unknown) => void;
  /** Called when the session could not be written: nobody will ever come back to the grant. */
  readonly onFailure: (error: unknown) => void;
}

type Done = (error?: unknown) => void;
type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => void;

/** What Passport adds to a request. */
interface PassportRequest {
  logIn?: LogIn;
  login?: LogIn;
}

/** Writes the handoff into the session as it is, and saves it: for `passport.authorize`, which logs nobody in. @throws TokenStoreError */
export async function handOffNow(req: IncomingMessage, handoff: GrantHandoff): Promise<void> {
  const session = sessionOf(req);
  if (!session) return;
  const former = session[handoff.key];
  handoff.onStart();
  if (handoff.reference !== undefined) session[handoff.key] = handoff.reference;
  const target = handoff.returnTo ?? session.returnTo;
  if (target !== undefined) session.returnTo = safeReturnTo(target);
  try {
    await saveSession(session);
  } catch (error) {
    restore(session, handoff.key, former);
    handoff.onFailure(error);
    throw error;
  }
  handoff.onSaved(former);
}

/**
 * Has each `req.logIn` of this request that writes a session carry the handoff through Passport's regeneration of it,
 * whoever calls that: Passport itself, or the application after `session: false` or in a callback of its own.
 */
export function handOffAtLogIn(req: IncomingMessage & PassportRequest, handoff: GrantHandoff): void {
  const logIn = req.logIn;
  if (!logIn) return;
  const carrying: LogIn = function logInWithGrant(user, given, callback) {
    const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
    const target = handoff.returnTo ?? sessionOf(req)?.returnTo;
    polyfillSessionMethods(sessionOf(req), isOption(options, 'keepSessionInfo', true));
    const carried = isOption(options, 'session', false) ? undefined : carry(req, handoff);
    let ended = false;
    const end: Done = (error) => {
      ended = true;
      if (error) carried?.undo(error);
      else carried?.confirm();
      if (!error) setReturnTo(req, target);
      done?.(error);
    };
    try {
      logIn.call(this, user, options, end);
    } catch (error) {
      if (!ended) carried?.undo(error);
      throw error;
    }
  };
  req.logIn = carrying;
  req.login = carrying;
}

/** A handoff that is on its way into the session. */
interface Carried {
  confirm(): void;
  undo(error: unknown): void;
}

function carry(req: IncomingMessage, handoff: GrantHandoff): Carried {
  const { key, reference } = handoff;
  const before = sessionOf(req);
  const former = before?.[key];
  handoff.onStart();
  const write = (session: SessionLike) => {
    if (reference !== undefined) session[key] = reference;
  };
  if (before) onRegeneration(before, () => sessionOf(req), write);
  return {
    confirm: () => handoff.onSaved(former),
    undo: (error) => {
      const session = sessionOf(req);
      // express-session saves what is left at the end of the response: by then its store may be back, and somebody
      // would be logged in who was told otherwise.
      if (session && session !== before) emptySession(session);
      else if (session) restore(session, key, former);
      handoff.onFailure(error);
    },
  };
}

function restore(session: SessionLike, key: string, former: unknown): void {
  if (former === undefined) delete session[key];
  else session[key] = former;
}

/** After the save: Passport reads it for its redirect and deletes it, and the session need not be saved once more. */
function setReturnTo(req: IncomingMessage, target: unknown): void {
  const session = sessionOf(req);
  if (session && target !== undefined) session.returnTo = safeReturnTo(target);
}

/** Whether an option of `req.logIn` has the very value. */
function isOption(options: unknown, name: string, value: boolean): boolean {
  return typeof options === 'object' && options !== null && Reflect.get(options, name) === value;
}
