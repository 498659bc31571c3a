import type { Application, Applications } from './applications.js';
import { isRecord } from './checks.js';
import type { Codes } from './codes.js';
import type { Grants, TokenResponse } from './grants.js';
import { type IncomingRequest, mediaType, parseJson } from './incoming-request.js';
import { json, methodNotAllowed, type Reply, refusal } from './reply.js';

/** Dependencies of the token endpoint. */
export interface TokenSetting {
  readonly applications: Applications;
  readonly codes: Codes;
  readonly grants: Grants;
  /** A second use of a code also ends the grant that the first one gave (RFC 6749, 4.1.2). */
  readonly revokeOnCodeReuse: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Serves the token endpoint: exchanges a code or a refresh token for tokens.
 *
 * service.md does not show refusals, so these are those of RFC 6749, 5.2.
 *
 * @see service.md sections 4.2 and 4.3
 */
export function serveToken(incoming: IncomingRequest, setting: TokenSetting): Reply {
  if (incoming.method !== 'POST') return methodNotAllowed('POST');
  if (mediaType(incoming.headers) !== 'application/json') {
    return invalid('The body must be JSON, with the header content-type: application/json.');
  }
  const body = parseJson(incoming.text ?? '');
  if (body === undefined) return invalid('The body is not well-formed JSON.');
  if (!isRecord(body.value)) return invalid('The body must be a JSON object.');
  const fields = body.value;
  if (fields.grant_type === 'authorization_code') return exchangeCode(fields, setting);
  if (fields.grant_type === 'refresh_token') return refresh(fields, setting);
  const error = fieldError(fields, ['grant_type']);
  if (error !== undefined) return invalid(error);
  return refusal(400, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
}

function exchangeCode(fields: Fields, { applications, codes, grants, revokeOnCodeReuse }: TokenSetting): Reply {
  const error = fieldError(fields, ['client_id', 'client_secret', 'redirect_uri', 'code'], ['code_verifier']);
  if (error !== undefined) return invalid(error);
  const application = authenticate(fields, applications);
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
  redeemed.markUsed(id);
  return tokens(response);
}

function refresh(fields: Fields, { applications, grants }: TokenSetting): Reply {
  const error = fieldError(fields, ['client_id', 'client_secret', 'refresh_token']);
  if (error !== undefined) return invalid(error);
  const application = authenticate(fields, applications);
  if (application === undefined) return unknownClient();
  const response = grants.refresh(String(fields.refresh_token), application.clientID);
  return 'refusal' in response ? refusal(400, 'invalid_grant', response.refusal) : tokens(response);
}

// A parameter without a value counts as missing (RFC 6749, 3.2).
function fieldError(fields: Fields, required: readonly string[], optional: readonly string[] = []): string | undefined {
  for (const name of [...required, ...optional]) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === '') {
      if (required.includes(name)) return `The field ${name} is missing.`;
    } else if (typeof value !== 'string') return `The field ${name} must be a string.`;
  }
  return undefined;
}

function authenticate(fields: Fields, applications: Applications): Application | undefined {
  const application = applications.find(String(fields.client_id));
  return application?.clientSecret === fields.client_secret ? application : undefined;
}

// Credentials in the body are not an HTTP authentication scheme, so there is no WWW-Authenticate.
function unknownClient(): Reply {
  return refusal(401, 'invalid_client', 'client_id and client_secret are not those of a registered application.');
}

function invalid(description: string): Reply {
  return refusal(400, 'invalid_request', description);
}

function tokens(response: TokenResponse): Reply {
  return json(200, response, { pragma: 'no-cache' });
}
