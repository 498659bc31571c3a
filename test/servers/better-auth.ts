import type { Browser } from '../support/browser.js';
import { type AuthorizationServer, type Place, type RunningServer, revokeAt } from './authorization-server.js';
import { npmVersion, startNodeProgram } from './node-program.js';

const options = {
  authorizationPath: '/api/auth/oauth2/authorize',
  tokenPath: '/api/auth/oauth2/token',
  tokenRequest: 'form',
  pkce: true,
  scope: 'openid offline_access',
} as const;

/** better-auth with its provider plugin. Its pages are the application's own; they call its API. */
export const betterAuth: AuthorizationServer = {
  name: 'better-auth',
  packages: ['better-auth', '@better-auth/oauth-provider'],
  version: npmVersion('@better-auth/oauth-provider') && npmVersion('better-auth'),
  options,
  identity: { path: '/api/auth/oauth2/userinfo', user: ({ sub }) => sub },
  lostAnswer: 'lost',
  start: async (place) => ({
    ...(await startNodeProgram('better-auth', place)),
    authorize: authorizeByApi(place),
    revoke: revokeAt('/api/auth/oauth2/revoke', place, options),
  }),
};

/** Does what the scripts of the pages do: they pass the signed query of their address on. */
function authorizeByApi({ origin }: Place): RunningServer['authorize'] {
  const call = async (browser: Browser, path: string, page: string, body: object): Promise<string> => {
    const oauth_query = new URL(page, origin).search.slice(1);
    const answer = await browser.visit(`${origin}/api/auth${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify({ ...body, oauth_query }),
    });
    const { url, redirect_uri } = answer.json();
    const next: unknown = url ?? redirect_uri;
    if (typeof next !== 'string') throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return next;
  };
  return async (browser, url, { name, password, declines }) => {
    const start = await browser.visit(url);
    // It takes Node's fetch for a script's and answers with JSON in place of a redirect.
    const signIn = start.headers.get('location') ?? String(start.json().url);
    const credentials = { email: `${name}@example.com`, password };
    const next = await call(browser, '/sign-in/email', signIn, credentials);
    if (!next.startsWith('/consent?')) return next;
    return call(browser, '/oauth2/consent', next, { accept: !declines });
  };
}
