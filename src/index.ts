/**
 * A Passport strategy that leaves every request with an authenticated API client that never goes stale.
 *
 * @module passport-oauth-app
 */
import type { ApiClient } from './api/api-client.js';

export { ApiClient } from './api/api-client.js';
export { ApiError } from './api/api-error.js';
export type { ApiResponse, ApiStream, PaginateOptions, RequestOptions, StandardSchema } from './api/call-options.js';
export type { RequestHeaders } from './api/request-headers.js';
export { memoryTokenStore } from './databases/memory-token-store.js';
export { embedded } from './embedded/embedded.js';
export type { EmbeddedOptions } from './embedded/frame-options.js';
export {
  AuthorizationError,
  ConfigurationError,
  ForwardError,
  NotAuthorizedError,
  OAuthAppError,
  ServiceUnavailableError,
  TokenError,
  TokenResponseError,
  TokenStoreError,
} from './errors.js';
export type { ApiEvent, GrantEvent, GrantLostEvent, LoginEvent, RefreshEvent } from './events.js';
export { forward } from './forward/forward.js';
export type { GrantSummary } from './grants/grant.js';
export type { AuthenticateOptions } from './login/authenticate.js';
export type { Profile, Verify, VerifyCallback, VerifyWithRequest } from './login/verify.js';
export { apiClient, type Handler } from './middleware/api-client.js';
export { logout } from './middleware/logout.js';
export { oauthErrors } from './middleware/oauth-errors.js';
export type { RequireAuthorizationOptions } from './middleware/require-authorization.js';
export type { Claims } from './oauth/claims.js';
export type { ApplicationGrant, TokenParameters } from './oauth/token-endpoint.js';
export type { ImportedTokens, IncomingRequest, KeepAliveResult, StrategyOptions } from './options.js';
export { requireAuthorization } from './step-up/require-authorization.js';
export { sessionTokenStore } from './stores/session-token-store.js';
export type { ListedTokenStore, StoredGrant, TokenStore } from './stores/token-store.js';
export { Strategy } from './strategy/strategy.js';

declare global {
  namespace Express {
    interface Request {
      /**
       * The client that `apiClient(strategy)` attached. Acts on behalf of the user who logged in.
       *
       * `grantId` is a string behind `requireAuthorization()`. In other handlers, read `authorized` first: without a
       * grant, `grantId` is undefined.
       */
      apiClient: ApiClient & { readonly grantId: string };
    }
    /** The application's user; Passport declares it too. */
    interface User {}
  }
}
