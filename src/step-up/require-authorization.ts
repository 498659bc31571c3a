import type { Handler } from '../middleware/api-client.js';
import { type RequireAuthorizationOptions, requireGrant } from '../middleware/require-authorization.js';
import { pageScopesFactory } from '../session/return-to.js';
import { ScopeRequests } from './scope-requests.js';

/**
 * Creates middleware that calls the next handler if the request has a grant, and the grant has all scopes of the route.
 * Otherwise it redirects a browser that requests a page to `login`, which leads back to the page; any other request gets a
 * `NotAuthorizedError`: 401 without a grant, 403 (`ERR_INSUFFICIENT_SCOPE`) without a scope. A visitor who comes back from the
 * login without the scopes gets that 403 too.
 *
 * @throws ConfigurationError that names the wrong or unknown option
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  if (Object(options).scope !== undefined) pageScopesFactory.create ??= (cookie) => new ScopeRequests(cookie);
  return requireGrant(options);
}
