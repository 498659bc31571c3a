import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, OAuthAppError } from '../errors.js';
import type { LoginEvent } from '../events.js';
import { type Grant, isRandomGrantId } from '../grants/grant.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { ANONYMOUS, RequestGrants } from './request-grants.js';
import { safeReturnTo } from './return-to.js';
import {
  callOnce,
  type Done,
  emptySession,
  type LogIn,
  polyfillSessionMethods,
  type SessionLike,
  sessionOf,
  sessionStoreFailed,
} from './session.js';
import type { Visit } from './visit.js';

/** The callback whose grant a session will refer to. */
export interface SessionLoginRequest {
  readonly visit: Visit;
  readonly res: ServerResponse;
  readonly manager: GrantManager;
  /** True for `passport.authorize`, which connects an account without a login. */
  readonly isConnection: boolean;
  /** Reports how the login ended: the first call counts. */
  readonly report: (outcome: LoginEvent['outcome'], details: Pick<LoginEvent, 'reason' | 'grantId' | 'scope'>) => void;
}

/**
 * Makes the session of a login refer to its grant.
 *
 * Passport gives a login a new session: it regenerates the old one, adds the user, and saves it. The reference is written in
 * between, without another save or `keepSessionInfo`. Three hooks replace what Passport calls, in this order: `req.logIn`,
 * `regenerate` of the old session, `save` of the new one.
 */
export class SessionLogin {
  readonly grantId: string;
  /** The source of the request's clients: ends if the login fails later on. */
  source: GrantCredentials | undefined;
  readonly #request: SessionLoginRequest;
  readonly #grants: RequestGrants;
  readonly #tokens: TokenSet;
  /** While a session is being written: the first one, and what it said of this strategy before. */
  #writing: { readonly session: SessionLike | undefined; readonly former: SessionLike } | undefined;
  #isFinished = false;

  /** @throws ConfigurationError if the response was already sent, or if the option `grantId` makes no id of the user */
  constructor(request: SessionLoginRequest, grants: RequestGrants, tokens: TokenSet, user: unknown) {
    const sent = sentResponseError(request.res);
    if (sent) throw sent;
    this.grantId = grants.newId(request.visit.req, user);
    this.#request = request;
    this.#grants = grants;
    this.#tokens = tokens;
  }

  /** Stores the grant. @throws TokenStoreError; ConfigurationError if the response has been sent by then */
  async store(): Promise<Grant> {
    const { manager, res, visit } = this.#request;
    const { idIsInSession, isNewId } = this.#grants;
    const formerId = () => (idIsInSession ? this.#grants.idOf(visit.req) : this.grantId);
    try {
      const grant = await manager.put(this.grantId, this.#tokens, isNewId, formerId);
      const sent = sentResponseError(res);
      if (sent) throw sent;
      return grant;
    } catch (error) {
      // A slow store may save the grant after all.
      this.discard();
      throw error;
    }
  }

  /**
   * Hooks `req.logIn`, so that each call that writes a session makes it refer to the grant. Passport calls it, or the
   * application does: after `session: false`, or in a custom callback.
   *
   * @param returnTo The page to return to; `undefined` for the one that the session names.
   */
  hookLogIn(returnTo: string | undefined): void {
    const req: IncomingMessage & { logIn?: LogIn; login?: LogIn } = this.#request.visit.req;
    const { logIn } = req;
    if (!logIn) return;
    const login = this;
    const logInWithGrant: LogIn = function logInWithGrant(user, given, callback) {
      const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
      const { session: saves, keepSessionInfo, successReturnToOrRedirect, successRedirect } = Object(options);
      const writes = saves !== false;
      const session = sessionOf(req);
      const page = returnTo ?? session?.returnTo;
      if (writes) {
        polyfillSessionMethods(session, keepSessionInfo === true);
        // With keepSessionInfo Passport copies the old session over the new one.
        login.write(session);
        login.#hook(session, 'regenerate');
      }
      const end: Done = (failure) => {
        const error = failure || (writes ? sentResponseError(login.#request.res) : undefined);
        if (writes && error) login.#undo(error);
        else if (writes) login.succeeded();
        // After the save: Passport reads and deletes it for its redirect, so the session need not be saved again.
        // A fixed successRedirect does not read it: the next login would lead there.
        const isRead = successReturnToOrRedirect || (writes && !successRedirect);
        if (!error && isRead && page !== undefined) (sessionOf(req) ?? addSession(req)).returnTo = safeReturnTo(page);
        done?.(error);
      };
      try {
        return callOnce(logIn.bind(this, user, options), end);
      } catch (error) {
        if (writes) login.#undo(error);
        throw error;
      }
    };
    req.logIn = logInWithGrant;
    req.login = logInWithGrant;
  }

  /** Hooks the next call of a session's method: replaces its error by ours, and writes the session that `regenerate` creates. */
  #hook(session: SessionLike | undefined, method: 'regenerate' | 'save'): void {
    const original = session?.[method];
    if (!session || typeof original !== 'function') return;
    const login = this;
    const former = method === 'regenerate' ? { ...session } : undefined;
    const own = Object.getOwnPropertyDescriptor(session, method);
    const hooked = function (this: unknown, done?: Done, ...others: readonly unknown[]) {
      delete session[method];
      if (own) Object.defineProperty(session, method, own);
      const end: Done = (error) => {
        if (!error && former) {
          const next = sessionOf(login.#request.visit.req);
          login.write(next, former);
          login.#hook(next, 'save');
        }
        done?.(error ? sessionStoreFailed(error) : undefined);
      };
      return callOnce(original.bind(this), end, ...others);
    };
    // Not enumerable: Passport would copy it along with the session.
    Object.defineProperty(session, method, { value: hooked, configurable: true, enumerable: false, writable: true });
  }

  /**
   * Writes the reference into a session, and whether the account is connected. Where the application finds the grant by its
   * own id, the session only records that its user logged in with this strategy. {@link succeeded} or {@link failed} follows.
   *
   * @param former The session before a login.
   * @param owner Who the session of a connection belongs to.
   */
  write(
    session: SessionLike | undefined,
    former: SessionLike | undefined = session,
    owner: typeof ANONYMOUS | true = true,
  ): void {
    const { key, connectionKey, idIsInSession, carryOver } = this.#grants;
    this.#writing ??= { session, former: { [key]: session?.[key], [connectionKey]: session?.[connectionKey] } };
    if (!session) return;
    this.#grants.hasSeenSession = true;
    carryOver?.(former ?? session, session);
    const { isConnection } = this.#request;
    if (idIsInSession) session[key] = this.grantId;
    if (idIsInSession && isConnection) session[connectionKey] = owner;
    else if (idIsInSession) delete session[connectionKey];
    else if (!isConnection) session[connectionKey] = false;
  }

  /** Puts back what the session said of this strategy before it was written. */
  restore(session: SessionLike): void {
    for (const [name, value] of Object.entries(this.#writing?.former ?? {})) {
      if (value === undefined) delete session[name];
      else session[name] = value;
    }
  }

  /** The session, if one was written, refers to the grant: the grant that it had before can go. */
  succeeded(): void {
    const { key, isNewId } = this.#grants;
    const former = this.#writing?.former[key];
    this.#isFinished = true;
    this.#writing = undefined;
    this.#request.report('success', { grantId: this.grantId, scope: this.#tokens.scope ?? [] });
    if (!isNewId || former === this.grantId || !isRandomGrantId(former)) return;
    this.#request.manager.discard(former).catch(() => {});
  }

  /** Ends a login whose action wrote no session: it succeeded. Does nothing after its end, or while a session is being written. */
  afterAction(): void {
    if (!this.#isFinished && !this.#writing) this.succeeded();
  }

  /** No session refers to the grant: the login failed. */
  failed(error: unknown): void {
    this.#isFinished = true;
    this.#writing = undefined;
    this.#request.report('error', { reason: reasonOf(error) });
    this.source?.end();
    this.discard();
  }

  /** Removes the grant, unless its id is the application's own and leads back to it. */
  discard(): void {
    if (this.#grants.isNewId) this.withdraw();
  }

  /** Removes the grant, whatever its id. */
  withdraw(): void {
    this.#request.manager.discard(this.grantId).catch(() => {});
  }

  #undo(error: unknown): void {
    if (!this.#writing) return;
    const { visit, res } = this.#request;
    const session = sessionOf(visit.req);
    // express-session saves what is left at the end of the response. Its store may work again by then, and would log
    // in a user whose login was reported as failed.
    if (session && session !== this.#writing.session) {
      emptySession(session);
      // The response was sent, so express-session will not overwrite the saved session: destroy it.
      if (res.headersSent && typeof session.destroy === 'function') session.destroy(() => {});
    } else if (session) {
      this.restore(session);
    }
    this.failed(error);
  }
}

/** Adds an object from which Passport reads the page to return to, where the application has no sessions. */
function addSession(req: IncomingMessage): SessionLike {
  const value: SessionLike = {};
  Object.defineProperty(req, 'session', { value, configurable: true, writable: true });
  return value;
}

/** Returns the error for a response that was already sent: the browser would never learn of its session. */
export function sentResponseError(res: ServerResponse): ConfigurationError | undefined {
  if (!res.headersSent && !res.writableEnded) return undefined;
  return new ConfigurationError(
    'The response was sent before the login finished, most likely by a timeout middleware. The user is not logged in. Give the callback route more time than the option timeout.',
    { code: 'ERR_RESPONSE_SENT' },
  );
}

/** Returns why a login ended with an error, as events have it. */
export function reasonOf(error: unknown): string {
  return error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION';
}
