import type { RequestGrants } from '../session/grant-reference.js';
import type { RequestClients } from '../session/request-clients.js';
import { SessionLogin, sentResponseError } from '../session/session-login.js';
import type { CallbackRequest } from './callback-request.js';
import type { FinishedLogin } from './finish-login.js';

/** What a session is established with. */
export interface EstablishSessionContext {
  /** `name`: the key of the reference in the session. */
  readonly settings: { readonly name: string };
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
}

/**
 * Stores the grant of a login, and makes the session refer to it when `req.logIn` is called.
 *
 * @throws ConfigurationError if the response was already sent; the grant is removed unless its id is the application's own
 * @throws TokenStoreError if the grant cannot be saved
 */
export async function establishSession(
  { grants, clients }: EstablishSessionContext,
  request: CallbackRequest,
  { tokens, verdict, returnTo }: FinishedLogin,
): Promise<SessionLogin> {
  const { visit, res, popup, manager } = request;
  const { req } = visit;
  const sent = sentResponseError(res);
  if (sent) throw sent;
  const grantId = grants.newId(req, verdict.user);
  popup?.admit(grantId);
  const { idIsInSession } = grants;
  const login = new SessionLogin(request, { ...grants.reference, grantId, scope: tokens.scope });
  const grant = await login.store(tokens, idIsInSession ? grants.idOf(req) : grantId);
  login.hookLogIn(returnTo);
  login.source = clients.switchTo(req, manager, grantId, grant);
  return login;
}
