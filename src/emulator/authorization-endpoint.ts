import type { Applications } from './applications.js';
import { type AuthorizationRequest, judge, type Scopes } from './authorization-request.js';
import type { Codes } from './codes.js';
import { consentPage, errorPage } from './consent-page.js';
import { type Incoming, mediaType } from './incoming-request.js';
import { type Query, readQuery, single } from './query.js';
import { methodNotAllowed, type Reply } from './reply.js';
import type { Users } from './users.js';

/** What the authorization endpoint needs to know of the service. */
export interface AuthorizeSetting {
  readonly applications: Applications;
  readonly users: Users;
  readonly codes: Codes;
  readonly scopes: Scopes | undefined;
}

/**
 * The authorization endpoint: the consent page, and what follows from the choice made there.
 *
 * @see service.md sections 4.1 and 7
 */
export function authorize(incoming: Incoming, setting: AuthorizeSetting): Reply {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') return ask(incoming.query, setting);
  return incoming.method === 'POST' ? decide(incoming, setting) : methodNotAllowed('GET, HEAD, POST');
}

function ask(query: Query | undefined, setting: AuthorizeSetting): Reply {
  return judged(query, setting, (request) => consentPage(request, setting.users, setting.scopes));
}

function decide(incoming: Incoming, setting: AuthorizeSetting): Reply {
  if (mediaType(incoming.headers) !== 'application/x-www-form-urlencoded') {
    return errorPage(400, 'invalid_request', 'The consent form is sent as application/x-www-form-urlencoded.');
  }
  // Another site's page cannot press the button. Clients that are no browsers do not send this header.
  if (incoming.headers['sec-fetch-site'] === 'cross-site') {
    return errorPage(403, 'invalid_request', 'The consent form was sent by another site.');
  }
  const form = readQuery(incoming.text ?? '');
  return judged(form, setting, (request) => decided(request, form ?? {}, setting));
}

function judged(
  query: Query | undefined,
  setting: AuthorizeSetting,
  go: (request: AuthorizationRequest) => Reply,
): Reply {
  const judgement = judge(query, setting.applications, setting.scopes);
  if (judgement.kind === 'ask') return go(judgement.request);
  const { error, description } = judgement;
  if (judgement.kind === 'refuse') return errorPage(400, error, description);
  return sentBack(judgement.redirectUri, { error, error_description: description, state: judgement.state });
}

function decided(request: AuthorizationRequest, form: Query, { users, codes }: AuthorizeSetting): Reply {
  const { application, redirectUri, scopes, challenge, state } = request;
  const decision = single(form, 'decision');
  if (decision === 'decline') return sentBack(redirectUri, { error: 'access_denied', state });
  if (decision !== 'approve')
    return errorPage(400, 'invalid_request', 'The field decision must be approve or decline.');
  // The first one is chosen on the page from the start, so that is who a form without the field stands for.
  const user = Object.hasOwn(form, 'user') ? users.find(single(form, 'user') ?? '') : users.first();
  if (user === undefined) return errorPage(400, 'invalid_request', 'The field user must be the id of a user.');
  const approval = { clientID: application.clientID, redirectUri, userId: user.id, scopes, challenge };
  return sentBack(redirectUri, { code: codes.issue(approval), state });
}

// A query that the redirect URL has already is kept as it is (RFC 6749, 3.1.2).
function sentBack(redirectUri: string, parameters: Readonly<Record<string, string | undefined>>): Reply {
  const added = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  const joint = redirectUri.includes('?') ? (/[?&]$/.test(redirectUri) ? '' : '&') : '?';
  const location = `${redirectUri}${joint}${added.join('&')}`;
  return {
    status: 302,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
    body: '',
  };
}
