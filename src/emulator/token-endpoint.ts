import { authenticated, type Fields, fieldError, fieldsIn, invalid } from './client-fields.js';
import type { Codes } from './codes.js';
import type { Application, Clients } from './directory.js';
import type { Grants } from './grants.js';
import type { Installations } from './installations.js';
import { type IncomingRequest, json, methodNotAllowed, type Reply, refusal } from './messages.js';
import type { Profile } from './profiles.js';

/** Dependencies of the token endpoint. */
export interface TokenSetting {
  readonly clients: Clients;
  readonly codes: Codes;
  readonly grants: Grants;
  readonly installations: Installations;
  /** `revoke`: a second use of a code also ends the grant that the first one gave (RFC 6749, 4.1.2). */
  readonly codeReuse: 'refuse' | 'revoke';
  readonly profile: Pick<
    Profile,
    | 'tokenRequest'
    | 'clientAuthentication'
    | 'refusalStatus'
    | 'refreshRefusal'
    | 'expiringOnRequest'
    | 'impliesCodeFlow'
  >;
}

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
  const fields = fieldsIn(incoming, tokenRequest);
  const reply = 'status' in fields ? fields : answer(fields.fields, incoming, setting);
  return refusalStatus !== 400 && reply.status >= 400 ? { ...reply, status: refusalStatus } : reply;
}

function answer(fields: Fields, incoming: IncomingRequest, setting: TokenSetting): Reply {
  const grantType = String(fields.grant_type ?? (setting.profile.impliesCodeFlow ? 'authorization_code' : undefined));
  const parameters = parametersOf.get(grantType);
  if (parameters === undefined) {
    const error = fieldError(fields, ['grant_type']);
    if (error !== undefined) return invalid(error);
    return refusal(400, 'unsupported_grant_type', `grant_type must be one of ${[...parametersOf.keys()].join(', ')}.`);
  }
  const { clientAuthentication, refreshRefusal } = setting.profile;
  const credentials = clientAuthentication === 'body' ? ['client_id', 'client_secret'] : [];
  const error = fieldError(fields, [...credentials, ...parameters], ['code_verifier', 'scope', 'domain']);
  if (error !== undefined) return invalid(error);
  const application = authenticated(fields, incoming, setting);
  if ('status' in application) return application;
  if (grantType === 'authorization_code') return exchange(fields, application, setting);
  if (grantType !== 'refresh_token') return applicationTokens(fields, application, setting);
  const response = setting.grants.refresh(String(fields.refresh_token), application.clientID);
  if (!('refusal' in response)) return json(200, response, { pragma: 'no-cache' });
  return refreshRefusal === undefined ? refusal(400, 'invalid_grant', response.refusal) : json(400, refreshRefusal);
}

/** Required parameters of each grant type, the client's apart. `redirect_uri` depends on the code. */
const parametersOf: ReadonlyMap<string, readonly string[]> = new Map([
  ['authorization_code', ['code']],
  ['refresh_token', ['refresh_token']],
  ['client_credentials', []],
  ['crowdin_app', ['app_id', 'app_secret', 'user_id']],
  ['crowdin_agent', ['app_id', 'app_secret', 'user_id', 'agent_id']],
]);

/** Issues a token to the application itself (RFC 6749, 4.4), or to one that is installed in an organization. */
function applicationTokens(fields: Fields, application: Application, { grants, installations }: TokenSetting): Reply {
  const { clientID, name } = application;
  const scopes = typeof fields.scope === 'string' ? fields.scope.split(' ').filter((scope) => scope !== '') : [];
  if (fields.grant_type === 'client_credentials') {
    const account = { id: clientID, name, projects: [] };
    return json(200, grants.startForApplication({ clientID, userId: clientID, scopes, account }), {
      pragma: 'no-cache',
    });
  }
  const actor = installations.actor(fields, clientID);
  if ('refusal' in actor) return refusal(400, 'invalid_grant', actor.refusal);
  return json(200, grants.startForApplication({ clientID, userId: actor.userId, scopes }), { pragma: 'no-cache' });
}

function exchange(
  fields: Fields,
  { clientID }: Application,
  { codes, grants, codeReuse, profile }: TokenSetting,
): Reply {
  const needsRedirectUri = !profile.impliesCodeFlow && codes.needsRedirectUri(String(fields.code));
  const error = needsRedirectUri ? fieldError(fields, ['redirect_uri']) : undefined;
  if (error !== undefined) return invalid(error);
  const verifier = fields.code_verifier;
  const redeemed = codes.redeem({
    code: String(fields.code),
    clientID,
    redirectUri: typeof fields.redirect_uri === 'string' ? fields.redirect_uri : undefined,
    verifier: typeof verifier === 'string' ? verifier : undefined,
  });
  if ('refusal' in redeemed) {
    if (codeReuse === 'revoke' && redeemed.grantId !== undefined) grants.end(redeemed.grantId);
    return refusal(400, 'invalid_grant', redeemed.refusal);
  }
  const { id, response } = grants.start(
    redeemed.approval,
    !profile.expiringOnRequest || String(fields.expiring) === '1',
  );
  redeemed.markUsed(id);
  return json(200, response, { pragma: 'no-cache' });
}
