import type { Application, Applications } from './applications.js';
import { isRecord } from './checks.js';
import type { Codes } from './codes.js';
import type { Grants, TokenResponse } from './grants.js';
import { type Incoming, mediaType, parseJson } from './incoming-request.js';
import { json, methodNotAllowed, type Reply, refusal } from './reply.js';

/** What the token endpoint needs to know of the service. */
export interface TokenSetting {
  readonly applications: Applications;
  readonly codes: Codes;
  readonly grants: Grants;
  /** Whether a second use of a code ends the grant that the first one gave (RFC 6749, 4.1.2), beside being refused. */
  readonly revokeOnCodeReuse: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The token endpoint: code for tokens, refresh token for the next pair.
 *
 * service.md does not show refusals, so these are those of RFC 6749, 5.2.
 *
 * @see service.md sections 4.2 and 4.3
 */
export function token(incoming: Incoming, setting: TokenSetting): Reply {
  if (incoming.method !== 'POST') return methodNotAllowed('POST');
  if (mediaType(incoming.headers) !== 'application/json') {
    return invalid('The body must be JSON, with the header content-type: application/json.');
  }
  const body = parseJson(incoming.text ?? '');
  if (body === undefined) return invalid('The body is not well-formed JSON.');
  if (!isRecord(body.value)) return invalid('The body must be a JSON object.');
  return granted(body.value, setting);
}

function granted(fields: Fields, setting: TokenSetting): Reply {
  const grantType = fields.grant_type;
  if (grantType === 'authorization_code') return redeem(fields, setting);
  if (grantType === 'refresh_token') return refresh(fields, setting);
  const fault = faultOf(fields, ['grant_type']);
  if (fault !== undefined) return invalid(fault);
  return refusal(400, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
}

function redeem(fields: Fields, { applications, codes, grants, revokeOnCodeReuse }: TokenSetting): Reply {
  const fault = faultOf(fields, ['client_id', 'client_secret', 'redirect_uri', 'code'], ['code_verifier']);
  if (fault !== undefined) return invalid(fault);
  const application = authenticated(fields, applications);
  if (application === undefined) return unknownClient();
  const verifier = fields.code_verifier;
  const redeemed = codes.redeem({
    code: String(fields.code),
    clientID: application.clientID,
    redirectUri: String(fields.redirect_uri),
    verifier: typeof verifier === 'string' ? verifier : undefined,
  });
  if ('refusal' in redeemed) {
    if (revokeOnCodeReuse && redeemed.grantId !== undefined) grants.end(redeemed.grantId);
    return refusal(400, 'invalid_grant', redeemed.refusal);
  }
  const { id, response } = grants.start(redeemed.approval);
  redeemed.spend(id);
  return success(response);
}

function refresh(fields: Fields, { applications, grants }: TokenSetting): Reply {
  const fault = faultOf(fields, ['client_id', 'client_secret', 'refresh_token']);
  if (fault !== undefined) return invalid(fault);
  const application = authenticated(fields, applications);
  if (application === undefined) return unknownClient();
  const response = grants.refresh(String(fields.refresh_token), application.clientID);
  return 'refusal' in response ? refusal(400, 'invalid_grant', response.refusal) : success(response);
}

// Parameters without a value count as missing (RFC 6749, 3.2).
function faultOf(fields: Fields, required: readonly string[], optional: readonly string[] = []): string | undefined {
  for (const name of [...required, ...optional]) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === '') {
      if (required.includes(name)) return `The field ${name} is missing.`;
    } else if (typeof value !== 'string') return `The field ${name} must be a string.`;
  }
  return undefined;
}

function authenticated(fields: Fields, applications: Applications): Application | undefined {
  const application = applications.find(String(fields.client_id));
  return application?.clientSecret === fields.client_secret ? application : undefined;
}

// Credentials in the body are no HTTP authentication scheme, so there is nothing to challenge for in WWW-Authenticate.
function unknownClient(): Reply {
  return refusal(401, 'invalid_client', 'client_id and client_secret are not those of a registered application.');
}

function invalid(description: string): Reply {
  return refusal(400, 'invalid_request', description);
}

function success(response: TokenResponse): Reply {
  return json(200, response, { pragma: 'no-cache' });
}
