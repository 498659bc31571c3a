import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthorizationError } from '../errors.js';
import type { TokenSet } from '../oauth/token-response.js';
import { FixedSource } from '../refresh/grant-credentials.js';
import { asRouted, isAbsolute, originalPath, originalUrl, routedPathOf } from '../request/incoming-request.js';
import { type CallbackQuery, readCallbackQuery } from './callback-query.js';
import type { LoginContext } from './login-context.js';
import type { PendingLogin } from './pending-logins.js';
import { loadProfile } from './profile.js';
import { type AnyVerify, callVerify, type Verdict } from './verify.js';

/** How a callback ends, unless it throws. */
export type CallbackOutcome =
  | {
      readonly kind: 'fail';
      readonly reason: 'refused' | 'declined' | 'denied';
      readonly info: unknown;
      readonly status?: number;
    }
  | {
      readonly kind: 'success';
      readonly tokens: TokenSet;
      readonly verdict: Verdict;
      readonly returnTo: string | undefined;
    };

/** What the application says of the callback's route. */
export interface CallbackRoute {
  readonly verify: AnyVerify | undefined;
  /** The option of `passport.authenticate` there. */
  readonly callbackURL: string | undefined;
}

type WellFormed = Exclude<CallbackQuery, { readonly kind: 'malformed' }>;

const FORGED =
  'This login was not begun in this browser, has been finished already, or is older than ten minutes. Please log in again.';

/** Error codes that may be named in messages; others are the sender's own words (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const REGISTERED_ERRORS = new Set([
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_request',
  'invalid_scope',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
]);

/**
 * Takes a callback in: state first, then decline or code exchange, then the application's `verify`.
 *
 * @throws AuthorizationError, TokenError, TokenResponseError, ServiceUnavailableError, or what `userProfile` and `verify` throw
 * @see service.md, 4.1 and 4.2; RFC 6749, 4.1.2
 */
export async function finishLogin(
  context: LoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  { verify, callbackURL }: CallbackRoute,
): Promise<CallbackOutcome> {
  // A method that is not GET does not come from a redirect of the service, and a prefetch not from the user.
  if (req.method !== 'GET') return refused('The callback takes GET requests.', 405);
  if (isPrefetch(req))
    throw new AuthorizationError('A callback is not to be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  const query = readCallbackQuery(originalUrl(req));
  if (query.kind === 'malformed') return refused('The parameters of the callback are malformed.', 400);
  const login = takeLogin(context, req, res, query, callbackURL);
  if (!login) return refused(FORGED, 403);
  if (query.kind === 'error') return declined(query.error);
  return await exchange(context, req, query.code, login, verify);
}

function takeLogin(
  { logins, settings }: LoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  { state }: WellFormed,
  callbackURL: string | undefined,
): PendingLogin | undefined {
  const found = state === undefined ? undefined : logins.find(req, state);
  const login = found && leadsHere(found.redirectUri, req, callbackURL, settings.callbackURL) ? found : undefined;
  if (state === undefined || !login || !logins.use(state, login)) return undefined;
  for (const cookie of logins.ended(req, state, login)) res.appendHeader('Set-Cookie', cookie);
  return login;
}

async function exchange(
  context: LoginContext,
  req: IncomingMessage,
  code: string,
  { redirectUri, codeVerifier, returnTo }: PendingLogin,
  verify: AnyVerify | undefined,
): Promise<CallbackOutcome> {
  const { settings, endpoint } = context;
  const tokens = await endpoint.exchangeCode({ code, redirectUri, codeVerifier });
  const profile = await loadProfile(settings.name, tokens, settings.userProfile, () =>
    context.clientOf(new FixedSource(tokens)),
  );
  const verdict = await callVerify(verify, settings.passReqToCallback ? req : undefined, tokens, profile);
  if (!verdict.user) return { kind: 'fail', reason: 'denied', info: verdict.info };
  return { kind: 'success', tokens, verdict, returnTo };
}

/**
 * Whether the redirect URL of a login has led to this request, as far as the request tells.
 *
 * @param own The URL that the callback's route names for itself
 * @param usual The one of the strategy. Where it is the login's own, any route will do: proxies change paths as they like
 */
function leadsHere(redirectUri: string, req: IncomingMessage, own: string | undefined, usual: string): boolean {
  if (own !== undefined && isAbsolute(own)) return own === redirectUri;
  if (own === undefined && usual === redirectUri) return true;
  const meant = routedPathOf(redirectUri, req);
  if (own !== undefined) return routedPathOf(own, req) === meant;
  const here = asRouted(originalPath(req));
  // A part of the path may have been taken off its front, or put there.
  return meant.endsWith(here) || here.endsWith(meant);
}

function declined(error: string): CallbackOutcome {
  if (error === 'access_denied') {
    return { kind: 'fail', reason: 'declined', info: { message: 'The user declined authorization' } };
  }
  const known = REGISTERED_ERRORS.has(error) ? error : undefined;
  throw new AuthorizationError(
    known
      ? `The authorization endpoint sent the browser back with the error ${known}.`
      : 'The authorization endpoint sent the browser back with an error that is not registered.',
    { error: known },
  );
}

function refused(message: string, status: number): CallbackOutcome {
  return { kind: 'fail', reason: 'refused', info: { message }, status };
}

function isPrefetch({ headers }: IncomingMessage): boolean {
  return ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) =>
    /\b(?:prefetch|prerender|preview)\b/i.test(String(headers[name] ?? '')),
  );
}
