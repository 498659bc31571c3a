import { type ApiClient, OAuthAppError } from 'passport-oauth-app';

/** When an access token was issued and when it expires, in epoch milliseconds. Never the token itself. */
export interface TokenState {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** The state of the client's access token, which is fresh after this; `undefined` if there is none now, or it does not tell. */
export async function readTokenState(client: ApiClient): Promise<TokenState | undefined> {
  try {
    return tokenStateOf(await client.accessToken());
  } catch (error) {
    if (error instanceof OAuthAppError) return undefined;
    throw error;
  }
}

/** What an access token says of its own lifetime; `undefined` if it is no JWT or has no `exp`. */
export function tokenStateOf(accessToken: string): TokenState | undefined {
  const { iat, exp } = claimsOf(accessToken);
  if (typeof exp !== 'number') return undefined;
  return { expiresAt: exp * 1000, issuedAt: (typeof iat === 'number' ? iat : exp) * 1000 };
}

/** The claims of a JWT, read without checking its signature: good enough to show them, and for nothing else. */
export function claimsOf(jwt: string): Readonly<Record<string, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
    return typeof claims === 'object' && claims !== null ? { ...claims } : {};
  } catch {
    return {};
  }
}
