import type { IncomingMessage } from 'node:http';
import type { TokenSet } from '../service/token-response.js';
import type { Profile } from './profile.js';

/** Passport's verify callback, in whichever arity the application has it. */
export type AnyVerify = (...args: never[]) => unknown;

/** What `verify` answered. */
export interface Verdict {
  /** `false`, `null` or `undefined`: not let in. */
  readonly user: unknown;
  readonly info: unknown;
}

/**
 * Asks the application who the user is.
 *
 * Arities are those of passport-oauth2: with one parameter more than usual, `verify` gets the answer of the token
 * endpoint before the profile. Left out, the profile is the user. Read at each call: NestJS sets the length late.
 */
export function callVerify(
  verify: AnyVerify | undefined,
  req: IncomingMessage | undefined,
  tokens: TokenSet,
  profile: Profile,
): Promise<Verdict> {
  if (!verify) return Promise.resolve({ user: profile, info: undefined });
  const start = req ? [req, tokens.accessToken, tokens.refreshToken] : [tokens.accessToken, tokens.refreshToken];
  const withParams = verify.length === start.length + 3;
  return new Promise((resolve, reject) => {
    const done = (error?: unknown, user?: unknown, info?: unknown) => (error ? reject(error) : resolve({ user, info }));
    const args = [...start, ...(withParams ? [tokens.params] : []), profile, done];
    const returned: unknown = (verify as (...args: unknown[]) => unknown)(...args);
    // An async verify that throws has nobody else to tell.
    if (returned instanceof Promise) returned.catch(reject);
  });
}
