import { type ApiClient, OAuthAppError } from 'passport-oauth-app';

/** When an access token was issued and when it expires, in epoch milliseconds. Never the token itself. */
export interface TokenState {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Returns the lifetime of the client's access token, refreshing it first if it is due; `undefined` if there is no valid token. */
export async function readTokenState(client: ApiClient): Promise<TokenState | undefined> {
  try {
    const { iat, exp } = claimsOf(await client.accessToken());
    if (typeof exp !== 'number') return undefined;
    return { expiresAt: exp * 1000, issuedAt: (typeof iat === 'number' ? iat : exp) * 1000 };
  } catch (error) {
    if (error instanceof OAuthAppError) return undefined;
    throw error;
  }
}

/** Returns the claims of a JWT without checking its signature: good enough to show them, and for nothing else. */
export function claimsOf(jwt: string): Readonly<Record<string, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
    return typeof claims === 'object' && claims !== null ? { ...claims } : {};
  } catch {
    return {};
  }
}
