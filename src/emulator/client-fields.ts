import { isRecord } from './checks.js';
import type { Application, Clients } from './directory.js';
import { bodyText, type IncomingRequest, mediaType, parseJson, parseQuery, type Reply, refusal } from './messages.js';
import type { Profile } from './profiles.js';

/** The parameters of a request to the token endpoint or the revocation endpoint. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reads the parameters of a request, or refuses it. */
export function fieldsIn(
  incoming: IncomingRequest,
  tokenRequest: Profile['tokenRequest'],
): { readonly fields: Fields } | Reply {
  return tokenRequest === 'json' ? jsonFields(incoming) : formFields(incoming);
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

/** Returns the application that has made a request, or the refusal of a client that is not known. */
export function authenticated(
  fields: Fields,
  incoming: IncomingRequest,
  { clients, profile }: { readonly clients: Clients; readonly profile: Pick<Profile, 'clientAuthentication'> },
): Application | Reply {
  const { clientAuthentication } = profile;
  const isBasic = clientAuthentication !== 'body';
  const application = isBasic
    ? basicClient(fields, incoming, clients, clientAuthentication === 'basic')
    : knownClient(String(fields.client_id), String(fields.client_secret), clients);
  if (application !== undefined) return application;
  // Credentials in the body are not an HTTP authentication scheme, so only Basic has a WWW-Authenticate.
  if (!isBasic)
    return refusal(401, 'invalid_client', 'client_id and client_secret are not those of a registered application.');
  const description =
    'The header Authorization: Basic must hold the client_id and client_secret of a registered application, and the body must not.';
  return refusal(401, 'invalid_client', description, { 'www-authenticate': 'Basic realm="token"' });
}

/** Returns what is wrong with the parameters. One without a value counts as missing (RFC 6749, 3.2). */
export function fieldError(
  fields: Fields,
  required: readonly string[],
  optional: readonly string[] = [],
): string | undefined {
  for (const name of [...required, ...optional]) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    // JSON clients send these as numbers, and no domain as null.
    if (typeof value === 'number' && (name === 'user_id' || name === 'agent_id')) continue;
    if (value === null && name === 'domain') continue;
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
  clients: Clients,
  isFormEncoded: boolean,
): Application | undefined {
  const [, encoded] = /^basic +([\w+/-]+=*)$/i.exec(headers.authorization ?? '') ?? [];
  if (encoded === undefined || Object.hasOwn(fields, 'client_secret')) return undefined;
  const credentials = Buffer.from(encoded, 'base64');
  const [id = '', ...secret] = credentials.toString(isFormEncoded ? 'latin1' : 'utf8').split(':');
  if (!isFormEncoded) return knownClient(id, secret.join(':'), clients);
  try {
    const [clientID = '', clientSecret = ''] = [id, secret.join(':')].map((part) =>
      decodeURIComponent(part.replaceAll('+', ' ')),
    );
    return knownClient(clientID, clientSecret, clients);
  } catch {
    return undefined;
  }
}

function knownClient(clientID: string, clientSecret: string, clients: Clients): Application | undefined {
  const application = clients.get(clientID);
  return application?.clientSecret === clientSecret ? application : undefined;
}

/** Refuses a malformed request. */
export function invalid(description: string): Reply {
  return refusal(400, 'invalid_request', description);
}
