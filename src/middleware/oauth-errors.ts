import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, partsOf } from '../api/api-client.js';
import { ApiError } from '../api/api-error.js';
import { fn, readOptions, withDefault } from '../checks.js';
import {
  AuthorizationError,
  ConfigurationError,
  NotAuthorizedError,
  OAuthAppError,
  publicName,
  TokenError,
  TokenResponseError,
} from '../errors.js';
import { isInFrame, isPageRequest, Visit } from '../session/visit.js';
import { holdsToken, loginFor, loginRoute, partOfLogin, redirectToLogin } from './login-redirect.js';

/** An error handler that Express 4, Express 5 and Connect all accept. */
export type ErrorHandler = (
  error: unknown,
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Options of {@link oauthErrors}. */
export interface OAuthErrorsOptions {
  /**
   * Path of the login route, where browsers that request a page are redirected. `{tenant}` stands for the request's tenant. Default:
   * no redirect, always the error.
   */
  readonly login?: string | undefined;
  /**
   * Logs an error whose status is 500 or more, of which visitors read nothing that helps; `false` logs none. Default:
   * `console.error`, and none if `NODE_ENV` is `test`.
   */
  readonly log?: ((error: OAuthAppError) => void) | false | undefined;
}

// Looks both up at each call: an application may set them later.
const logToConsole = (error: unknown): void => {
  if (process.env.NODE_ENV !== 'test') console.error(error);
};

/**
 * Creates an error handler for the errors of this package alone; all others go on to the next handler.
 *
 * A browser that requests a page without being authorized is redirected to `login`, which leads back to the page; not from the
 * routes of login and callback. Any other request gets the error's status, `Retry-After` if there is one, and
 * `{ error, message }` as JSON, or `CODE: message` as text. The message quotes nothing of the service, and nothing that is meant
 * for the developer, which is logged. Mount it after all routes.
 *
 * @throws ConfigurationError that names the wrong or unknown option
 * @example
 * ```ts
 * app.use(oauthErrors({ login: '/login' }));
 * ```
 */
export function oauthErrors(options: OAuthErrorsOptions = {}): ErrorHandler {
  const { login: route, log } = readOptions('oauthErrors(options)', options, {
    login: loginRoute,
    log: withDefault(logToConsole, (option, value) =>
      value === false ? false : fn<(error: OAuthAppError) => void>(option, value),
    ),
  });
  // Express recognizes error handlers by their four parameters.
  return function answerError(error, req, res, next) {
    if (!(error instanceof OAuthAppError) || res.headersSent) return next(error);
    const client = clientOf(req, error.strategy);
    const login = loginFor(route, client);
    if (login !== undefined && isPageRequest(req.method, req.headers) && needsLogin(error, req, client)) {
      const visit = new Visit(req);
      // An error of the login itself, as of `verify`, would come back with the next one.
      if (partOfLogin(visit, login) === undefined) return redirectToLogin(visit, res, login, client);
    }
    const message = messageOf(error);
    const isText = prefersText(req);
    // A rejection of an async one would end the process.
    if (log && error.status >= 500) Promise.resolve(log(error)).catch(logToConsole);
    const body = isText ? `${error.code}: ${message}` : JSON.stringify({ error: error.code, message });
    const retryAfter: unknown = Reflect.get(error, 'retryAfter');
    // The API's redirect to another origin is an error, whose target is not for the browser.
    res.statusCode = error.status < 400 ? 502 : error.status;
    if (typeof retryAfter === 'number') res.setHeader('Retry-After', String(retryAfter));
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('X-Content-Type-Options', 'nosniff');
    res.setHeader('Content-Type', isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8');
    res.setHeader('Content-Length', Buffer.byteLength(body));
    res.end(req.method === 'HEAD' ? undefined : body);
  };
}

/** Returns true if a login can resolve an error. */
function needsLogin(error: OAuthAppError, req: IncomingMessage, client: ApiClient | undefined): boolean {
  // Requests of the frame name their user, whoever logs in.
  if (holdsToken.has(req) && isInFrame(req.headers)) return false;
  // Whoever lacks a scope (403) is logged in: another login would lead here again.
  if (error instanceof NotAuthorizedError) return error.status === 401;
  // The service refuses to renew the request's grant, which a login replaces.
  const isOfToken = error instanceof TokenError || error instanceof TokenResponseError;
  return isOfToken && client !== undefined && partsOf(client).source.isRefused === true;
}

/** Returns the request's client of a strategy, whatever its property. */
function clientOf(req: IncomingMessage, strategyName: string | undefined): ApiClient | undefined {
  const clients = Object.values(req).filter((value) => value instanceof ApiClient);
  return clients.find((client) => publicName(partsOf(client).context.strategyName).strategy === strategyName);
}

/** Returns the message for whoever sent the request. Messages about answers of the service may quote them. */
function messageOf(error: OAuthAppError): string {
  if (error instanceof ConfigurationError && error.status >= 500) return 'The application is not set up correctly.';
  if (error instanceof ApiError) return 'The API of the service did not answer this request as expected.';
  const isOfService =
    error instanceof TokenError || error instanceof TokenResponseError || error instanceof AuthorizationError;
  if (isOfService) return 'The authorization server of the service did not answer as expected. Please try again.';
  return error.message;
}

/** Returns true if a request asks for a page or for text, rather than for data. */
function prefersText({ headers: { accept = '' } }: IncomingMessage): boolean {
  const [json, text] = [accept.search(/\/(?:[\w.+-]+\+)?json\b/i), accept.search(/\btext\/(?:html|plain)\b/i)];
  return text !== -1 && (json === -1 || text < json);
}
