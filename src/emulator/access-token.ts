import type { Secrets } from './secrets.js';

/** What an access token says, and what the service reads from it again. */
export interface AccessTokenContent {
  /** The grant that it belongs to. */
  readonly grantId: number;
  /** Counts the access tokens of the service, so that no two are equal even within one second. */
  readonly serial: number;
  /** Epoch milliseconds. The claim `exp` has whole seconds only. */
  readonly expiresAt: number;
}

const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url');

/**
 * An access token: a JWT, signed with HS256. Its `jti` holds the content in full, so that the service needs to remember nothing.
 *
 * @param claims - All other claims; they may replace `iat` and `exp`.
 * @see service.md section 2, Token response: "It is structured as a JWT"
 */
export function signAccessToken(
  secrets: Secrets,
  content: AccessTokenContent,
  claims: Readonly<Record<string, unknown>>,
): string {
  const jti = `${content.grantId}.${content.serial}.${content.expiresAt}`;
  const payload = Buffer.from(JSON.stringify({ ...claims, jti })).toString('base64url');
  return `${header}.${payload}.${secrets.sign(`${header}.${payload}`)}`;
}

/** The content of an access token of this service; `undefined` for any other string. */
export function readAccessToken(secrets: Secrets, token: string): AccessTokenContent | undefined {
  const signed = token.lastIndexOf('.');
  if (signed < 0 || secrets.sign(token.slice(0, signed)) !== token.slice(signed + 1)) return undefined;
  const claims: { jti: string } = JSON.parse(
    Buffer.from(token.slice(header.length + 1, signed), 'base64url').toString(),
  );
  const [grantId, serial, expiresAt] = claims.jti.split('.').map(Number);
  return grantId === undefined || serial === undefined || expiresAt === undefined
    ? undefined
    : { grantId, serial, expiresAt };
}
