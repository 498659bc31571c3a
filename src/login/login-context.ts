import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Advice } from '../advice/advice.js';
import type { LoopGuard } from '../advice/loop-guard.js';
import type { OpenStrategy } from '../advice/open-strategies.js';
import type { ApiContext } from '../api/api-context.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { Settings } from '../options.js';
import type { LoginReturns } from '../session/login-returns.js';
import type { RequestClients } from '../session/request-clients.js';
import type { GrantManagers, RequestGrants } from '../session/request-grants.js';
import type { PageScopes, ReturnCookie } from '../session/return-to.js';
import type { Visit } from '../session/visit.js';
import type { FrameTarget, PendingLogin, PendingLogins, UsedLogins } from './pending-logins.js';
import type { AnyVerify } from './verify.js';

/** What logins need of their strategy. */
export interface LoginRuntime {
  readonly settings: Settings;
  /** Differs for each `authUrl` and `clientID`. Empty for a tenant. */
  readonly service: string;
  readonly verify: AnyVerify | undefined;
  readonly openStrategy: OpenStrategy;
  readonly returns: LoginReturns;
  readonly grants: RequestGrants;
  readonly managers: GrantManagers;
  readonly clients: RequestClients;
  readonly api: ApiContext;
  readonly endpoint: TokenEndpoint;
  readonly returnCookie: ReturnCookie;
  /** The scopes that pages ask for; `undefined` if none does. */
  readonly pageScopes: () => PageScopes | undefined;
  /** By the requests that they send; `undefined` for applications without frames. */
  readonly popups: WeakMap<IncomingMessage, Popup> | undefined;
  /** Set by `loginsOf`, when a login is first begun or looked for. */
  logins?: LoginContext | undefined;
}

/** What the logins of one strategy share. */
export interface LoginContext {
  readonly runtime: LoginRuntime;
  readonly advice: Advice;
  readonly loops: LoopGuard;
  readonly pendingLogins: PendingLogins;
  readonly usedLogins: UsedLogins<CallbackOutcome>;
  /** The authorization request up to its `state`, for the strategy's own `callbackURL` and `scope`. */
  readonly defaultRequest: AuthorizationPart;
  /** The strategy's own further parameters, unless they depend on the request. */
  readonly defaultParams: AuthorizationPart | undefined;
}

/** What the strategy reads of the options of `passport.authenticate` and `passport.authorize`, as JavaScript passes them. */
export type RouteOptions = {
  readonly [Name in
    | ('scope' | 'callbackURL' | 'authorizationParams' | 'state' | 'assignProperty' | 'session')
    | ('successRedirect' | 'successReturnToOrRedirect' | 'failureRedirect')]?: unknown;
};

/** A request to a route of login or callback. */
export interface RouteRequest {
  readonly visit: Visit;
  readonly res: ServerResponse;
  readonly actions: PassportActions;
  readonly options: RouteOptions;
  /** The route's, if it has one. */
  readonly callbackURL: string | undefined;
}

/** A part of the URL of an authorization request. */
export interface AuthorizationPart {
  readonly text: string;
  /** True if a parameter asks the service to show no page: see `PendingLogin.isSilent`. */
  readonly isSilent: boolean;
}

/** What Passport lets a strategy do with a request: exactly one of them. */
export interface PassportActions {
  /** Returns what a callback given to `passport.authenticate` returns: a promise, if that is an async function. */
  success(user: unknown, info?: unknown): unknown;
  fail(info?: unknown, status?: number): unknown;
  redirect(url: string, status?: number): void;
  /** Returns like `success`. */
  error(error: unknown): unknown;
}

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery = { readonly kind: 'malformed' } | CallbackAnswer;

/** What the service answers in a callback: a code, or an error. */
export type CallbackAnswer = { readonly state: string | undefined; readonly issuer: string | undefined } & (
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'error'; readonly error: string; readonly description: string | undefined }
);

/** How a callback ends, unless it throws. */
export type CallbackOutcome = CallbackFailure | FinishedLogin;

/** A callback that Passport's `fail` answers. */
export interface CallbackFailure {
  readonly kind: 'fail';
  /** `replayed`: the state is unknown or used. `foreign`: it is another strategy's. `abandoned`: the browser left. */
  readonly reason: 'refused' | 'replayed' | 'foreign' | 'declined' | 'denied' | 'abandoned';
  readonly info: unknown;
  readonly status?: number | undefined;
}

/** The service issued tokens, and the application accepted the user. */
export interface FinishedLogin {
  readonly kind: 'success';
  readonly tokens: TokenSet;
  readonly user: unknown;
  readonly info: unknown;
  readonly login: PendingLogin;
}

/** A login in a popup. Its session is for the frame that opened it, and the user's tabs stay as they are. */
export interface Popup {
  readonly target: FrameTarget;
  /** Called before the grant is stored. @throws AuthorizationError if the frame has another user */
  admit(grantId: string): void;
  /** Called with the scopes that were not granted. @param isDeclined True if the login failed by that. */
  noteRefused(scope: readonly string[], isDeclined: boolean): void;
}
