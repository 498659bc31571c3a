import { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, createApiClient, partsOf } from '../api/api-client.js';
import type { ApiContext, CredentialSource } from '../api/api-context.js';
import { thrownError } from '../checks.js';
import { ConfigurationError, cloneError, closedError, NotAuthorizedError, OAuthAppError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { LoginReturns } from './login-returns.js';
import type { GrantManagers } from './request-grants.js';
import { ANONYMOUS, type RequestGrants } from './request-grants.js';
import type { PageScopes, ReturnCookie } from './return-to.js';
import {
  type Done,
  isRefusedUser,
  type LogIn,
  passportRecordOf,
  polyfillSessionMethods,
  type SessionLike,
  sessionOf,
  userOf,
} from './session.js';
import { frameworkError, isPageRequest, refuseOldPassport, Visit } from './visit.js';

interface RequestClientsOptions {
  readonly managers: GrantManagers;
  readonly grants: RequestGrants;
  readonly api: ApiContext;
  readonly returns: LoginReturns;
  /** Holds the page to return to, for browsers that are sent to log in. */
  readonly returnCookie: ReturnCookie;
  /** The scopes that each login of the strategy asks for. */
  readonly scope: readonly string[];
  /** The scopes that pages ask for; `undefined` if none does. */
  readonly pageScopes: () => PageScopes | undefined;
}

/** By the context that all clients of a strategy share. */
const clientsByContext = new WeakMap<ApiContext, RequestClients>();

/** Returns the clients of a client's strategy, for guards; `undefined` for a client without one. */
export function clientsOf(client: ApiClient): RequestClients | undefined {
  return clientsByContext.get(partsOf(client).context);
}

type LogOut = (this: IncomingMessage, options: unknown, done?: Done) => unknown;

/** What Passport adds to a request. */
interface WithLogOut {
  logOut?: LogOut;
  logout?: LogOut;
  logIn?: LogIn;
  login?: LogIn;
}

/** A request, as an object with properties of any name. */
type WithClients = IncomingMessage & Record<string, unknown>;

/** The source of a request without a grant. */
export const NO_GRANT_SOURCE: CredentialSource = {
  grantId: undefined,
  authorized: false,
  credential: () =>
    Promise.reject(
      new NotAuthorizedError('No user has authorized this application for this request: the user has to log in first.'),
    ),
};

/** Returns the source of a client that cannot work. Counts as authorized, since nothing else is known. */
export function failedSource(error: OAuthAppError): CredentialSource {
  const credential = () => Promise.reject(cloneError(error));
  return { grantId: undefined, authorized: true, credential };
}

/** Attaches API clients to requests. */
export class RequestClients {
  readonly logoutRoutes: LogoutRoutes = new LogoutRoutes();
  readonly options: RequestClientsOptions;
  readonly #responses = new WeakMap<IncomingMessage, ServerResponse>();
  /** Names of the request properties that hold a client of this strategy: most often one. */
  readonly #properties: string[] = [];
  /** Passport's `req.logOut`, or that of another strategy, and what replaces it. */
  readonly #logOuts = new WeakMap<LogOut, LogOut>();
  /** Requests that had neither session nor user when {@link attach} ran. */
  readonly early: WeakSet<IncomingMessage> = new WeakSet();

  constructor(options: RequestClientsOptions) {
    this.options = options;
    clientsByContext.set(options.api, this);
  }

  /**
   * Finds the request's grant and attaches a client for it. For a page, a grant that is due is refreshed now; for any other
   * request, which may be a logout, when the client is first used.
   *
   * @returns `undefined` if the grant was cached; else a promise that never rejects
   */
  attach(req: IncomingMessage & WithLogOut, res: ServerResponse, property: string): Promise<void> | undefined {
    const { api, grants, returns } = this.options;
    if (!this.#properties.includes(property)) this.#properties.push(property);
    // For the strategy, which receives the request alone. Express links the two, Connect does not.
    if (!('res' in req)) this.#responses.set(req, res);
    const session = sessionOf(req);
    const source = this.#sourceFor(req, session, property);
    const mayReturn = req.headers.cookie?.includes(returns.cookieName) === true;
    (req as WithClients)[property] = createApiClient(source, api);
    if (!(source instanceof GrantCredentials)) {
      if (!grants.canFindGrant(req)) this.early.add(req);
      const isReturn = mayReturn && source === NO_GRANT_SOURCE && isPageRequest(req.method, req.headers);
      if (isReturn) returns.recordReturn(new Visit(req), res, 'none');
      return undefined;
    }
    // The application's own req.logout() deletes the grant, too.
    if (grants.idIsInSession && typeof req.logOut === 'function') {
      req.logOut = this.#logOuts.get(req.logOut) ?? this.#wrapLogOut(req.logOut);
      req.logout = req.logOut;
    }
    if (session?.[grants.connectionKey] === ANONYMOUS) this.#wrapLogIn(req);
    // Only its handler knows what another request is for.
    const isPage = req.method === 'GET' || req.method === 'HEAD';
    const pending = source.prepare(isPage && !this.logoutRoutes.has(req));
    if (!mayReturn) return pending;
    // No closure here: it would cost memory in each request that needs none.
    if (pending) return this.#attachedAfter(pending, req, res, source);
    returns.recordReturn(new Visit(req), res, 'grant');
    return undefined;
  }

  /** Returns the source of the request's credentials, which another client may have already. */
  #sourceFor(req: IncomingMessage, session: SessionLike | undefined, property: string): CredentialSource {
    const { grants, managers } = this.options;
    try {
      if (managers.isClosed) throw closedError();
      const grantId = grants.idOf(req, session);
      if (grantId === undefined) return NO_GRANT_SOURCE;
      const manager = managers.for(req);
      // A client under the only property: the request passes for the second time.
      const mayHaveSource = this.#properties.length > 1 || (req as WithClients)[property] !== undefined;
      const known = mayHaveSource ? this.#sourceOf(req, grantId) : undefined;
      if (known) return known;
      // Mounted before passport.session(), which may refuse the user.
      const mayBeRefused =
        !userOf(req) && passportRecordOf(req) !== undefined && session?.[grants.connectionKey] !== ANONYMOUS;
      const isRefused = mayBeRefused ? () => isRefusedUser(req, sessionOf(req) ?? {}) : undefined;
      return new GrantCredentials(manager, grantId, { isRefused });
    } catch (error) {
      return failedSource(error instanceof OAuthAppError ? error : thrownError('grantId', 'an id', error));
    }
  }

  async #attachedAfter(
    pending: Promise<void>,
    req: IncomingMessage,
    res: ServerResponse,
    source: GrantCredentials,
  ): Promise<void> {
    await pending;
    this.options.returns.recordReturn(new Visit(req), res, source.authorized ? 'grant' : 'lost');
  }

  #wrapLogOut(logOut: LogOut): LogOut {
    const { logoutRoutes } = this;
    const { grants, managers } = this.options;
    const wrapped: LogOut = function logOutAndDeleteGrant(given, callback) {
      refuseOldPassport(this);
      logoutRoutes.add(this);
      const [options, done] = typeof given === 'function' ? [{}, given as Done] : [given, callback];
      const session = sessionOf(this);
      // Sessions without a store (cookie-session) lack the methods that Passport calls.
      polyfillSessionMethods(session, Object(options).keepSessionInfo === true);
      const grantId = typeof done === 'function' ? grants.referenceOf(this, session) : undefined;
      if (!session || grantId === undefined) return logOut.call(this, options, done);
      delete session[grants.key];
      return logOut.call(this, options, (error) => {
        if (!error)
          return void managers
            .for(this)
            .remove(grantId)
            .then(() => done?.(), done);
        const kept = sessionOf(this);
        if (kept) kept[grants.key] = grantId;
        done?.(error);
      });
    };
    this.#logOuts.set(logOut, wrapped);
    // A second client of the request finds it wrapped already.
    this.#logOuts.set(wrapped, wrapped);
    return wrapped;
  }

  /**
   * Makes the application's own `req.login()` delete the grant that was connected before it. Passport gives the user a new
   * session, which does not refer to it: an attacker may have planted the old one in this browser.
   */
  #wrapLogIn(req: IncomingMessage & WithLogOut): void {
    const { grants, managers } = this.options;
    const { logIn } = req;
    if (typeof logIn !== 'function') return;
    const wrapped: LogIn = function logInAndDeleteGrant(user, given, callback) {
      const [options, done] = typeof given === 'function' ? [{}, given as Done] : [given, callback];
      const former = grants.referenceOf(req);
      return logIn.call(this, user, options, (error) => {
        const isLost = !error && former !== undefined && grants.referenceOf(req) !== former;
        if (isLost)
          managers
            .for(req)
            .discard(former)
            .catch(() => {});
        done?.(error);
      });
    };
    req.logIn = wrapped;
    req.login = wrapped;
  }

  /**
   * Replaces the request's clients with clients of the new grant, for the handlers that run after login. Returns their source;
   * `undefined` if the request has no client.
   */
  switchTo(
    req: IncomingMessage,
    manager: GrantManager,
    grantId: string,
    grant: Grant | undefined,
  ): GrantCredentials | undefined {
    // No client can have an id that is new.
    let source = this.options.grants.isNewId ? undefined : this.#sourceOf(req, grantId);
    for (const property of this.#properties) {
      if (!((req as WithClients)[property] instanceof ApiClient)) continue;
      source ??= new GrantCredentials(manager, grantId);
      (req as WithClients)[property] = createApiClient(source, this.options.api);
    }
    if (grant) source?.take(grant);
    return source;
  }

  /** Ends the clients of this request: the user logs out. @returns the id of the grant that they had */
  end(req: IncomingMessage): string | undefined {
    const source = this.#sourceOf(req);
    source?.end();
    return source?.grantId;
  }

  /** Returns the response of a request. @throws ConfigurationError if neither the framework nor {@link attach} has linked it */
  responseOf(req: IncomingMessage): ServerResponse {
    const linked = 'res' in req ? (req.res as ServerResponse | undefined) : undefined;
    const res = linked ?? this.#responses.get(req);
    if (res instanceof ServerResponse && req instanceof IncomingMessage) return res;
    const error = res || 'raw' in req ? frameworkError(req, res) : undefined;
    if (error) throw error;
    if (res) return res;
    throw new ConfigurationError(
      'The strategy cannot find the response of this request: under Connect, mount apiClient(strategy) before the routes of login and callback.',
      { code: 'ERR_NO_RESPONSE' },
    );
  }

  /**
   * Returns the source that this strategy's clients of a request share: each learns what the others learn, such as a logout.
   * Another strategy may have put its own client under the same property.
   *
   * @param grantId Default: a source of any grant.
   */
  #sourceOf(req: IncomingMessage, grantId?: string): GrantCredentials | undefined {
    for (const property of this.#properties) {
      const client = (req as WithClients)[property];
      if (!(client instanceof ApiClient)) continue;
      const { source, context } = partsOf(client);
      const isAlive = context === this.options.api && source instanceof GrantCredentials && !source.hasEnded;
      if (isAlive && (grantId === undefined || source.grantId === grantId)) return source;
    }
    return undefined;
  }
}

/** Most routes that are remembered; beyond it the oldest is forgotten. */
const MAX_ROUTES = 1_000;

/**
 * The routes on which a logout has run in this process, by method and route, and by method and path: their next requests
 * neither start a refresh nor wait for one. Anyone can write a URL that looks like a logout, so its words decide nothing.
 */
export class LogoutRoutes {
  readonly #logouts = new Set<string>();

  /** Remembers the route of a logout. */
  add(req: IncomingMessage): void {
    for (const key of [routeKey(req), pathKey(req)]) {
      if (key === undefined) continue;
      this.#logouts.delete(key);
      this.#logouts.add(key);
    }
    for (const oldest of this.#logouts) {
      if (this.#logouts.size <= MAX_ROUTES) break;
      this.#logouts.delete(oldest);
    }
  }

  /** Returns true if a logout has run on the route of a request, or on its path before its route is known. */
  has(req: IncomingMessage): boolean {
    if (this.#logouts.size === 0) return false;
    const route = routeKey(req);
    return (route !== undefined && this.#logouts.has(route)) || this.#logouts.has(pathKey(req));
  }
}

/** Returns `undefined` before a router of Express has found the route. */
function routeKey(req: IncomingMessage & { readonly baseUrl?: unknown }): string | undefined {
  const path: unknown = 'route' in req ? Reflect.get(Object(req.route), 'path') : undefined;
  return typeof path === 'string' ? `${req.method} ${req.baseUrl ?? ''} ${path}` : undefined;
}

function pathKey(req: IncomingMessage): string {
  return `${req.method} ${new Visit(req).path}`;
}
