import { endpointUrl } from '../oauth/addresses.js';
import type { Settings } from '../options.js';
import type { AuthorizationPart } from './login-context.js';

/** Returns an authorization request up to its `state`. */
export function authorizationRequest(
  settings: Pick<Settings, 'authUrl' | 'authorizationPath' | 'clientID' | 'scopeSeparator'>,
  redirectUri: string,
  scope: string,
): AuthorizationPart {
  const { authUrl, authorizationPath, clientID, scopeSeparator } = settings;
  const query = new URLSearchParams({ client_id: clientID, redirect_uri: redirectUri, response_type: 'code' });
  // Services without scopes get none.
  if (scope !== '') query.set('scope', scope.replaceAll(' ', scopeSeparator));
  const endpoint = endpointUrl(authUrl, authorizationPath);
  const text = `${endpoint}${endpoint.search === '' ? '?' : '&'}${query}`;
  return { text, isSilent: isSilent(endpoint.searchParams) };
}

/** Returns further parameters as the text that ends an authorization URL. */
export function furtherParams(params: Readonly<Record<string, string>>): AuthorizationPart {
  const query = new URLSearchParams(params);
  return { text: query.size === 0 ? '' : `&${query}`, isSilent: isSilent(query) };
}

function isSilent(query: URLSearchParams): boolean {
  return query.getAll('prompt').some((prompt) => prompt.split(' ').includes('none'));
}
