import {
  type AuthorizationRequest,
  type AuthorizationRules,
  validateAuthorizationRequest,
} from './authorization-request.js';
import type { Codes } from './codes.js';
import { consentPage, errorPage } from './consent-page.js';
import { bodyText, type IncomingRequest, mediaType, parseQuery, type Query, single } from './incoming-request.js';
import { methodNotAllowed, type Reply } from './reply.js';
import type { Users } from './users.js';

/** Dependencies of the authorization endpoint. */
export interface AuthorizationSetting extends AuthorizationRules {
  readonly users: Users;
  readonly codes: Codes;
}

/**
 * Serves the authorization endpoint: the consent page on GET, the user's decision on POST.
 *
 * @see service.md sections 4.1 and 7
 */
export function serveAuthorization(incoming: IncomingRequest, setting: AuthorizationSetting): Reply {
  const { method, path, query, headers } = incoming;
  if (method === 'GET' || method === 'HEAD') {
    return validated(query, setting, (request) =>
      consentPage({ ...request, action: path }, setting.users.all(), setting.scopes),
    );
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
  const { error, description, redirectUri, state } = result;
  if (redirectUri === undefined) return errorPage(400, error, description);
  return redirect(redirectUri, { error, error_description: description, state });
}

function decided(request: AuthorizationRequest, form: Query, { users, codes }: AuthorizationSetting): Reply {
  const { application, redirectUri, scopes, challenge, state } = request;
  const decision = single(form, 'decision');
  if (decision === 'decline') return redirect(redirectUri, { error: 'access_denied', state });
  if (decision !== 'approve')
    return errorPage(400, 'invalid_request', 'The field decision must be approve or decline.');
  // The page preselects the first user, so that is the user of a form without the field.
  const user = Object.hasOwn(form, 'user') ? users.find(single(form, 'user') ?? '') : users.first();
  if (user === undefined) return errorPage(400, 'invalid_request', 'The field user must be the id of a user.');
  const approval = { clientID: application.clientID, redirectUri, userId: user.id, scopes, challenge };
  return redirect(redirectUri, { code: codes.issue(approval), state });
}

// Keeps a query that the redirect URL has already (RFC 6749, 3.1.2).
function redirect(redirectUri: string, parameters: Readonly<Record<string, string | undefined>>): Reply {
  const added = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  const joint = redirectUri.includes('?') ? (/[?&]$/.test(redirectUri) ? '' : '&') : '?';
  const location = `${redirectUri}${joint}${added.join('&')}`;
  const headers = { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
  return { status: 302, headers, body: '' };
}
