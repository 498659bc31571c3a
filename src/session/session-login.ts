import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, OAuthAppError } from '../errors.js';
import type { LoginEvent } from '../events.js';
import { type Grant, isRandomGrantId } from '../grants/grant.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { ANONYMOUS, RequestGrants } from './grant-reference.js';
import { safeReturnTo } from './return-to.js';
import {
  callOnce,
  type Done,
  emptySession,
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
  /** Of the request's grants. */
  readonly manager: GrantManager;
  readonly route: { readonly isConnection: boolean };
  /** Reports how the login ended. */
  readonly report: (outcome: LoginEvent['outcome'], details: Pick<LoginEvent, 'reason' | 'grantId' | 'scope'>) => void;
}

type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => unknown;

/** Options of `req.logIn` that Passport reads. */
interface LogInOptions {
  readonly session?: unknown;
  readonly keepSessionInfo?: unknown;
  readonly successReturnToOrRedirect?: unknown;
  readonly successRedirect?: unknown;
}

/** `idle`: no session was written yet. `writing`: the session of that moment, and what it said of this strategy before. */
type LoginState =
  | { readonly is: 'idle' | 'saved' | 'failed' }
  | { readonly is: 'writing'; readonly session: SessionLike | undefined; readonly former: SessionLike };

/**
 * Makes the session of a login refer to its grant.
 *
 * Passport gives a login a new session: it regenerates the old one, adds the user, and saves it. The reference is written in
 * between, so it needs neither another save nor `keepSessionInfo`. For that, three hooks stand in front of the methods
 * that Passport calls: `req.logIn`, then `regenerate` of the old session, then `save` of the new one.
 */
export class SessionLogin {
  readonly grantId: string;
  /** The source of the request's clients: ended if the login fails later on. */
  source: GrantCredentials | undefined;
  readonly #request: SessionLoginRequest;
  readonly #grants: RequestGrants;
  readonly #tokens: TokenSet;
  #state: LoginState = { is: 'idle' };

  /** @throws ConfigurationError if the response was already sent, or if the option `grantId` makes no id of the user */
  constructor(request: SessionLoginRequest, grants: RequestGrants, tokens: TokenSet, user: unknown) {
    const sent = sentResponseError(request.res);
    if (sent) throw sent;
    this.grantId = grants.newId(request.visit.req, user);
    this.#request = request;
    this.#grants = grants;
    this.#tokens = tokens;
  }

  /**
   * Stores the grant.
   *
   * @throws TokenStoreError; ConfigurationError if the response has been sent by then
   */
  async store(): Promise<Grant> {
    const { manager, res, visit } = this.#request;
    const { idIsInSession, isNewId } = this.#grants;
    const formerId = idIsInSession ? this.#grants.idOf(visit.req) : this.grantId;
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
   * application after `session: false` or in a custom callback.
   *
   * @param returnTo The page to return to; `undefined` for what the session says.
   */
  hookLogIn(returnTo: string | undefined): void {
    const req: IncomingMessage & { logIn?: LogIn; login?: LogIn } = this.#request.visit.req;
    const { logIn } = req;
    if (!logIn) return;
    const login = this;
    const logInWithGrant: LogIn = function logInWithGrant(user, given, callback) {
      const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
      const { session: saves, keepSessionInfo, ...redirects }: LogInOptions = Object(options);
      const writes = saves !== false;
      const session = sessionOf(req);
      const page = returnTo ?? session?.returnTo;
      if (writes) {
        polyfillSessionMethods(session, keepSessionInfo === true);
        login.begin(session);
        if (session) {
          const former = { ...session };
          hook(session, 'regenerate', () => {
            const next = sessionOf(req);
            if (!next) return;
            login.write(next, true, former);
            // To turn the store's error into ours.
            hook(next, 'save');
          });
          // With keepSessionInfo Passport copies the old session over the new one.
          login.write(session);
        }
      }
      const end: Done = (failure) => {
        const error = failure || (writes ? sentResponseError(login.#request.res) : undefined);
        if (writes && error) login.#undo(error);
        else if (writes) login.saved();
        // After the save: Passport reads and deletes it for its redirect, so the session need not be saved once more.
        // A fixed successRedirect does not read it: the next login would lead there.
        const isRead = redirects.successReturnToOrRedirect || (writes && !redirects.successRedirect);
        if (!error && isRead && page !== undefined) (sessionOf(req) ?? noSession(req)).returnTo = safeReturnTo(page);
        done?.(error);
      };
      try {
        return callOnce((once) => logIn.call(this, user, options, once), end);
      } catch (error) {
        if (writes) login.#undo(error);
        throw error;
      }
    };
    req.logIn = logInWithGrant;
    req.login = logInWithGrant;
  }

  /** Begins to write a session: `saved` or `failed` follows. */
  begin(session: SessionLike | undefined): void {
    const { key, connectionKey } = this.#grants;
    const former = { [key]: session?.[key], [connectionKey]: session?.[connectionKey] };
    this.#state = { is: 'writing', session, former };
  }

  /**
   * Writes the reference into a session, and whether the account is connected. Where the application finds the grant by its
   * own id, the session only records that its user has logged in with this strategy.
   *
   * @param owner Who the session of a connection belongs to.
   * @param former The session before a login.
   */
  write(session: SessionLike, owner: typeof ANONYMOUS | true = true, former: SessionLike = session): void {
    const { key, connectionKey, idIsInSession, carryOver } = this.#grants;
    carryOver?.(former, session);
    const { isConnection } = this.#request.route;
    if (idIsInSession) session[key] = this.grantId;
    if (idIsInSession && isConnection) session[connectionKey] = owner;
    else if (idIsInSession) delete session[connectionKey];
    else if (!isConnection) session[connectionKey] = false;
  }

  /** Puts back what the session said of this strategy before it was written. */
  restore(session: SessionLike): void {
    if (this.#state.is !== 'writing') return;
    for (const [name, value] of Object.entries(this.#state.former)) {
      if (value === undefined) delete session[name];
      else session[name] = value;
    }
  }

  /** The session refers to the grant: the login has succeeded, and the grant that the session had before can go. */
  saved(): void {
    const { key, isNewId } = this.#grants;
    const former = this.#state.is === 'writing' ? this.#state.former[key] : undefined;
    this.#state = { is: 'saved' };
    this.reportUnwritten();
    if (!isNewId || former === this.grantId || !isRandomGrantId(former)) return;
    this.#request.manager.discard(former).catch(() => {});
  }

  /** No session refers to the grant: the login has failed. */
  failed(error: unknown): void {
    this.#state = { is: 'failed' };
    this.#request.report('error', { reason: reasonOf(error) });
    this.source?.end();
    this.discard();
  }

  /** Reports the success of a login, unless its session is being written: that reports by itself. */
  reportUnwritten(): void {
    const { is } = this.#state;
    const { scope = [] } = this.#tokens;
    if (is === 'idle' || is === 'saved') this.#request.report('success', { grantId: this.grantId, scope });
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
    if (this.#state.is !== 'writing') return;
    const { visit, res } = this.#request;
    const session = sessionOf(visit.req);
    // express-session saves what is left at the end of the response. Its store may work again by then, and would log
    // in a user whose login was reported as failed.
    if (session && session !== this.#state.session) {
      emptySession(session);
      // The response was sent, so express-session will not overwrite the saved session: destroy it.
      if (res.headersSent && typeof session.destroy === 'function') session.destroy(() => {});
    } else if (session) {
      this.restore(session);
    }
    this.failed(error);
  }
}

/** Stands in front of a session's callback method once: calls `then` if it succeeds, and replaces its error by one of ours. */
function hook(session: SessionLike, method: 'regenerate' | 'save', then?: () => void): void {
  const original = session[method];
  if (typeof original !== 'function') return;
  const own = Object.getOwnPropertyDescriptor(session, method);
  const hooked = function (this: unknown, done?: Done, ...others: unknown[]) {
    delete session[method];
    if (own) Object.defineProperty(session, method, own);
    return callOnce(
      (once) => original.call(this, once, ...others),
      (error) => {
        if (!error) then?.();
        done?.(error ? sessionStoreFailed(error) : undefined);
      },
    );
  };
  // Not enumerable: Passport would copy it along with the session.
  Object.defineProperty(session, method, { value: hooked, configurable: true, enumerable: false, writable: true });
}

/** Adds an object from which Passport reads the page to return to, where the application has no sessions. */
function noSession(req: IncomingMessage): SessionLike {
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
