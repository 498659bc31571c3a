import { isRecord } from './checks.js';
import type { Codes } from './codes.js';
import type { Application, Applications } from './directory.js';
import type { Grants } from './grants.js';
import {
  bodyText,
  type IncomingRequest,
  json,
  mediaType,
  methodNotAllowed,
  parseJson,
  parseQuery,
  type Reply,
  refusal,
} from './messages.js';
import type { Profile } from './profiles.js';

/** Dependencies of the token endpoint. */
export interface TokenSetting {
  readonly applications: Applications;
  readonly codes: Codes;
  readonly grants: Grants;
  /** `revoke`: a second use of a code also ends the grant that the first one gave (RFC 6749, 4.1.2). */
  readonly codeReuse: 'refuse' | 'revoke';
  readonly profile: Pick<Profile, 'tokenRequest' | 'clientAuthentication' | 'refusalStatus' | 'refreshRefusal'>;
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
  const { tokenRequest, refusalStatus } = setting.profile;
  const fields = tokenRequest === 'json' ? jsonFields(incoming) : formFields(incoming);
  const reply = 'status' in fields ? fields : answer(fields.fields, incoming, setting);
  return refusalStatus !== 400 && reply.status >= 400 ? { ...reply, status: refusalStatus } : reply;
}

function jsonFields(incoming: IncomingRequest): { readonly fields: Fields } | Reply {
  if (mediaType(incoming.headers) !== 'application/json') {
    return invalid('The body must be JSON, with the header content-type: application/json.');
  }
  const body = parseJson(bodyText(incoming));
  if (body === undefined) return invalid('The body is not well-formed JSON.');
  return isRecord(body.value) ? { fields: body.value } : invalid('The body must be a JSON object.');
}

function formFields(incoming: IncomingRequest): { readonly fields: Fields } | Reply {
  const type = 'application/x-www-form-urlencoded';
  if (mediaType(incoming.headers) !== type)
    return invalid(`The body must be a form, with the header content-type: ${type}.`);
  const fields = parseQuery(bodyText(incoming));
  return fields === undefined ? invalid('The percent-encoding of the body is invalid.') : { fields };
}

function answer(fields: Fields, incoming: IncomingRequest, setting: TokenSetting): Reply {
  const grantType = fields.grant_type;
  if (grantType !== 'authorization_code' && grantType !== 'refresh_token') {
    const error = fieldError(fields, ['grant_type']);
    if (error !== undefined) return invalid(error);
    return refusal(400, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
  }
  const { clientAuthentication, refreshRefusal } = setting.profile;
  const isBasic = clientAuthentication !== 'body';
  const credentials = isBasic ? [] : ['client_id', 'client_secret'];
  const parameters = grantType === 'refresh_token' ? ['refresh_token'] : ['redirect_uri', 'code'];
  const error = fieldError(fields, [...credentials, ...parameters], ['code_verifier']);
  if (error !== undefined) return invalid(error);
  const application = isBasic
    ? basicClient(fields, incoming, setting.applications, clientAuthentication === 'basic')
    : knownClient(String(fields.client_id), String(fields.client_secret), setting.applications);
  if (application === undefined) {
    // Credentials in the body are not an HTTP authentication scheme, so only Basic has a WWW-Authenticate.
    if (!isBasic)
      return refusal(401, 'invalid_client', 'client_id and client_secret are not those of a registered application.');
    const description =
      'The header Authorization: Basic must hold the client_id and client_secret of a registered application, and the body must not.';
    return refusal(401, 'invalid_client', description, { 'www-authenticate': 'Basic realm="token"' });
  }
  if (grantType === 'authorization_code') return exchange(fields, application, setting);
  const response = setting.grants.refresh(String(fields.refresh_token), application.clientID);
  if (!('refusal' in response)) return json(200, response, { pragma: 'no-cache' });
  return refreshRefusal === undefined ? refusal(400, 'invalid_grant', response.refusal) : json(400, refreshRefusal);
}

function exchange(fields: Fields, { clientID }: Application, { codes, grants, codeReuse }: TokenSetting): Reply {
  const verifier = fields.code_verifier;
  const redeemed = codes.redeem({
    code: String(fields.code),
    clientID,
    redirectUri: String(fields.redirect_uri),
    verifier: typeof verifier === 'string' ? verifier : undefined,
  });
  if ('refusal' in redeemed) {
    if (codeReuse === 'revoke' && redeemed.grantId !== undefined) grants.end(redeemed.grantId);
    return refusal(400, 'invalid_grant', redeemed.refusal);
  }
  const { id, response } = grants.start(redeemed.approval);
  redeemed.markUsed(id);
  return json(200, response, { pragma: 'no-cache' });
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

/** Reads the Basic credentials, of which each part may be form-encoded. A secret in the body is refused (RFC 6749, 2.3 and 2.3.1). */
function basicClient(
  fields: Fields,
  { headers }: IncomingRequest,
  applications: Applications,
  isFormEncoded: boolean,
): Application | undefined {
  const [, encoded] = /^basic +([\w+/-]+=*)$/i.exec(headers.authorization ?? '') ?? [];
  if (encoded === undefined || Object.hasOwn(fields, 'client_secret')) return undefined;
  const credentials = Buffer.from(encoded, 'base64');
  const [id = '', ...secret] = credentials.toString(isFormEncoded ? 'latin1' : 'utf8').split(':');
  if (!isFormEncoded) return knownClient(id, secret.join(':'), applications);
  try {
    const [clientID = '', clientSecret = ''] = [id, secret.join(':')].map((part) =>
      decodeURIComponent(part.replaceAll('+', ' ')),
    );
    return knownClient(clientID, clientSecret, applications);
  } catch {
    return undefined;
  }
}

function knownClient(clientID: string, clientSecret: string, applications: Applications): Application | undefined {
  const application = applications.byId.get(clientID);
  return application?.clientSecret === clientSecret ? application : undefined;
}

function invalid(description: string): Reply {
  return refusal(400, 'invalid_request', description);
}
