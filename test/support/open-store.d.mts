import type { ListedTokenStore, TokenStore } from 'passport-oauth-app';
import type { SharedStore } from './processes.js';

/** Opens the store that the processes of a test share. */
export function openStore(
  store: SharedStore,
): Promise<{ readonly tokenStore: ListedTokenStore & Pick<TokenStore, 'watch'>; close(): unknown }>;
