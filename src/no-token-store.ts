import { ConfigurationError } from './errors.js';

/** The error of a client outside of a request, while nothing leads to a token store. */
export function noTokenStore(): ConfigurationError {
  return new ConfigurationError(
    'tokenStore: outside of a request there is no session that leads to a store. Set tokenStore: sessionTokenStore(store), with the store of your sessions.',
    { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
  );
}
