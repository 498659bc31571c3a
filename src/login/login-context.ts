import type { ApiClient } from '../api/api-client.js';
import type { CredentialSource } from '../api/credential.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import type { Settings } from '../options.js';
import type { PendingLogins } from './pending-logins.js';

/** What a login works with, of all that belongs to a strategy. */
export interface LoginContext {
  readonly settings: Settings;
  readonly logins: PendingLogins;
  readonly endpoint: TokenEndpoint;
  clientOf(source: CredentialSource): ApiClient;
}
