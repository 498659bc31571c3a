import type { Codes } from './codes.js';
import type { Consents } from './consents.js';
import { type Application, type Clients, isRedirectUrl, type Users } from './directory.js';
import {
  bodyText,
  type IncomingRequest,
  mediaType,
  methodNotAllowed,
  parseQuery,
  type Query,
  type Reply,
  single,
} from './messages.js';
import { consentPage, errorPage, unregisteredPage } from './page.js';
import type { Profile } from './profiles.js';

/** A valid authorization request. @see service.md section 4.1 */
export interface AuthorizationRequest {
  readonly application: Application;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly state: string | undefined;
  readonly challenge: string | undefined;
  /** The parameters as received, for the consent page to send along. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** An error of an authorization request, with the codes of RFC 6749, 4.1.2.1. */
export interface AuthorizationError {
  readonly error: string;
  readonly description: string;
  /** The redirect URL that receives the error; `undefined` if the request does not name one of the application's own. */
  readonly redirectUri?: string;
  readonly state?: string | undefined;
  /** The redirect URL that its application has not registered. */
  readonly unregistered?: { readonly application: Application; readonly redirectUri: string };
}

/** Rules of the service for authorization requests. */
export interface AuthorizationRules {
  readonly clients: Clients;
  /** The scopes that exist. `undefined` accepts every well-formed name, as service.md does not list them. */
  readonly scopes: Scopes | undefined;
  readonly profile: Pick<Profile, 'scopeSeparator' | 'scopeRequired' | 'authorizationParams' | 'impliesCodeFlow'>;
}

/** Scope names with their descriptions for users. */
export type Scopes = Readonly<Record<string, string>>;

const names = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
];

/**
 * Validates an authorization request.
 *
 * service.md shows no error but `access_denied`. All others follow RFC 6749, 4.1.2.1: a wrong client or redirect URL
 * gets an error page; any other error is sent to the redirect URL.
 *
 * @param query - `undefined` if its encoding is invalid.
 * @see service.md sections 4.1 and 7
 */
export function validateAuthorizationRequest(
  query: Query | undefined,
  rules: AuthorizationRules,
): AuthorizationRequest | AuthorizationError {
  const { clients, profile } = rules;
  if (query === undefined) return invalid('The percent-encoding of the query is invalid.');
  const application = clients.get(single(query, 'client_id') ?? '');
  if (application === undefined)
    return invalid(about(query, 'client_id', 'is not the client ID of a registered application'));
  const redirectUri = single(query, 'redirect_uri');
  if (redirectUri === undefined || !application.redirectUrls.includes(redirectUri)) {
    const error = invalid(about(query, 'redirect_uri', 'is not registered with the application'));
    return redirectUri === undefined ? error : { ...error, unregistered: { application, redirectUri } };
  }
  const state = single(query, 'state');
  const error = parameterError(query, rules);
  if (error !== undefined) return { ...error, redirectUri, state };
  return {
    application,
    redirectUri,
    scopes: scopeNames(single(query, 'scope') ?? '', profile.scopeSeparator),
    state,
    challenge: single(query, 'code_challenge'),
    parameters: Object.fromEntries(
      [...names, ...Object.keys(profile.authorizationParams)].flatMap((name) => {
        const value = single(query, name);
        return value === undefined ? [] : [[name, value]];
      }),
    ),
  };
}

function invalid(description: string): AuthorizationError {
  return { error: 'invalid_request', description };
}

function about(query: Query, name: string, otherwise: string): string {
  if (!Object.hasOwn(query, name)) return `The parameter ${name} is missing.`;
  return single(query, name) === undefined
    ? `The parameter ${name} came more than once.`
    : `The parameter ${name} ${otherwise}.`;
}

function parameterError(query: Query, rules: AuthorizationRules): AuthorizationError | undefined {
  const repeated = names.find((name) => Object.hasOwn(query, name) && single(query, name) === undefined);
  if (repeated !== undefined) return invalid(`The parameter ${repeated} came more than once.`);
  const responseType = single(query, 'response_type') ?? (rules.profile.impliesCodeFlow ? 'code' : undefined);
  if (responseType === undefined) return invalid('The parameter response_type is missing.');
  if (responseType !== 'code') {
    return { error: 'unsupported_response_type', description: 'response_type must be code.' };
  }
  const wrong = Object.entries(rules.profile.authorizationParams).find(
    ([name, value]) => single(query, name) !== value,
  );
  if (wrong !== undefined) return invalid(`The parameter ${wrong[0]} must be ${wrong[1]}.`);
  return scopeError(single(query, 'scope'), rules) ?? challengeError(query);
}

function scopeError(
  scope: string | undefined,
  { scopes: known, profile: { scopeRequired, scopeSeparator } }: AuthorizationRules,
): AuthorizationError | undefined {
  if (scope === undefined || scope === '') {
    if (!scopeRequired) return undefined;
    if (scope === undefined) return invalid('The parameter scope is missing.');
  }
  const scopes = scopeNames(scope, scopeSeparator);
  // The characters of a scope name, RFC 6749, 3.3. Quotation marks are not among them, as service.md says too.
  const wellFormed = scopes.length > 0 && scopes.every((name) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name));
  if (wellFormed && (known === undefined || scopes.every((name) => Object.hasOwn(known, name)))) return undefined;
  const separator = scopeSeparator === ' ' ? 'spaces' : `"${scopeSeparator}"`;
  return { error: 'invalid_scope', description: `scope must hold known scope names, separated by ${separator}.` };
}

function challengeError(query: Query): AuthorizationError | undefined {
  const challenge = single(query, 'code_challenge');
  const method = single(query, 'code_challenge_method');
  if (challenge === undefined && method === undefined) return undefined;
  if (method !== 'S256') return invalid('code_challenge_method must be S256.');
  const wellFormed = challenge !== undefined && /^[\w-]{43}$/.test(challenge);
  return wellFormed ? undefined : invalid('code_challenge must be a SHA-256 hash in base64url.');
}

function scopeNames(scope: string, separator: string): readonly string[] {
  return [...new Set(scope.split(separator).filter((name) => name !== ''))];
}

/** Dependencies of the authorization endpoint. */
export interface AuthorizationSetting extends AuthorizationRules {
  readonly users: Users;
  readonly codes: Codes;
  readonly consents: Consents;
  /** If true, a user who approved the same scopes before is redirected immediately. */
  readonly remembers: boolean;
  /** Address of the page, for the command that registers a redirect URL. */
  readonly origin: string;
}

/** Forces the consent page even for a remembered user: `approve()` picks a user each time. */
export const ASK_HEADER = 'emulator-ask';

/**
 * Serves the authorization endpoint: the consent page on GET, the user's decision on POST.
 *
 * @see service.md sections 4.1 and 7
 */
export function serveAuthorization(incoming: IncomingRequest, setting: AuthorizationSetting): Reply {
  const { method, path, query, headers } = incoming;
  if (method === 'GET' || method === 'HEAD') {
    return validated(query, setting, (request) => {
      const { consents, users, scopes, remembers } = setting;
      const approver = consents.approver(request.application.clientID, request.scopes);
      const asks = !remembers || headers[ASK_HEADER] !== undefined || single(query ?? {}, 'prompt') === 'consent';
      // HEAD is a safe method (RFC 9110, 9.2.1): it issues no code.
      if (method === 'GET' && !asks && approver !== undefined && users.byId.has(approver))
        return approved(request, approver, request.scopes, setting);
      return consentPage({ ...request, action: path }, users.byId.values(), scopes, consents.userId);
    });
  }
  if (method !== 'POST') return methodNotAllowed('GET, HEAD, POST');
  if (mediaType(headers) !== 'application/x-www-form-urlencoded') {
    return errorPage(400, 'invalid_request', 'The consent form must be sent as application/x-www-form-urlencoded.');
  }
  // Stops pages of other sites from submitting the form. Clients that are not browsers do not send this header.
  if (headers['sec-fetch-site'] === 'cross-site') {
    return errorPage(403, 'invalid_request', 'The consent form was sent by another site.');
  }
  const form = parseQuery(bodyText(incoming));
  return validated(form, setting, (request) => decided(request, form ?? {}, setting));
}

function validated(
  query: Query | undefined,
  setting: AuthorizationSetting,
  serve: (request: AuthorizationRequest) => Reply,
): Reply {
  const result = validateAuthorizationRequest(query, setting);
  if (!('error' in result)) return serve(result);
  const { error, description, redirectUri, state, unregistered } = result;
  if (unregistered !== undefined) {
    const { application, redirectUri: url } = unregistered;
    return unregisteredPage(description, application, isRedirectUrl(url) ? url : undefined, setting.origin);
  }
  if (redirectUri === undefined) return errorPage(400, error, description);
  return redirect(redirectUri, { error, error_description: description, state });
}

function decided(request: AuthorizationRequest, form: Query, setting: AuthorizationSetting): Reply {
  const { redirectUri, state } = request;
  const { users } = setting;
  const decision = single(form, 'decision');
  if (decision === 'decline') return redirect(redirectUri, { error: 'access_denied', state });
  if (decision !== 'approve')
    return errorPage(400, 'invalid_request', 'The field decision must be approve or decline.');
  // The page preselects the first user, so a form without the field means that user.
  const [first] = users.byId.values();
  const user = Object.hasOwn(form, 'user') ? users.byId.get(single(form, 'user') ?? '') : first;
  if (user === undefined) return errorPage(400, 'invalid_request', 'The field user must be the id of a user.');
  // A test may post only the hidden fields. Such a form has no choice of scopes and grants all of them.
  const ticked = new Set([form.granted ?? []].flat());
  const isChosen = single(form, 'choice') === 'scopes';
  const granted = isChosen ? request.scopes.filter((scope) => ticked.has(scope)) : request.scopes;
  if (setting.remembers) setting.consents.remember(user.id, request.application.clientID, granted);
  return approved(request, user.id, granted, setting);
}

function approved(
  request: AuthorizationRequest,
  userId: string,
  granted: readonly string[],
  { codes }: AuthorizationSetting,
): Reply {
  const { application, redirectUri, scopes, challenge, state } = request;
  const isReduced = granted.length < scopes.length;
  const approval = { clientID: application.clientID, redirectUri, userId, scopes: granted, isReduced, challenge };
  return redirect(redirectUri, { code: codes.issue(approval), state });
}

// Keeps the redirect URL's own query (RFC 6749, 3.1.2).
function redirect(redirectUri: string, parameters: Readonly<Record<string, string | undefined>>): Reply {
  const added = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  const joint = redirectUri.includes('?') ? (/[?&]$/.test(redirectUri) ? '' : '&') : '?';
  const location = `${redirectUri}${joint}${added.join('&')}`;
  const headers = { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
  return { status: 302, headers, body: '' };
}
