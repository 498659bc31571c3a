import { authenticated, fieldError, fieldsIn, invalid } from './client-fields.js';
import type { Clients } from './directory.js';
import type { Grants } from './grants.js';
import { type IncomingRequest, json, methodNotAllowed, type Reply } from './messages.js';
import type { Profile } from './profiles.js';

/** Dependencies of the revocation endpoint. */
export interface RevocationSetting {
  readonly clients: Clients;
  readonly grants: Grants;
  readonly profile: Pick<Profile, 'tokenRequest' | 'clientAuthentication'>;
}

/**
 * Serves the revocation endpoint: ends the grant of a refresh token or of an access token.
 *
 * service.md has no such endpoint, so this is that of RFC 7009, where an unknown token is not an error.
 */
export function serveRevocation(incoming: IncomingRequest, setting: RevocationSetting): Reply {
  if (incoming.method !== 'POST') return methodNotAllowed('POST');
  const read = fieldsIn(incoming, setting.profile.tokenRequest);
  if ('status' in read) return read;
  const { fields } = read;
  const credentials = setting.profile.clientAuthentication === 'body' ? ['client_id', 'client_secret'] : [];
  const error = fieldError(fields, [...credentials, 'token'], ['token_type_hint']);
  if (error !== undefined) return invalid(error);
  const application = authenticated(fields, incoming, setting);
  if ('status' in application) return application;
  setting.grants.revoke(String(fields.token), application.clientID, setting.clients);
  return json(200, {});
}
