import type { IncomingMessage } from 'node:http';
import type { TokenSet } from '../oauth/token-response.js';
import type { IncomingRequest } from '../options.js';
import type { Profile } from './profile.js';

/** How `verify` answers: an error, or a user, or `false` and why not. */
export type VerifyCallback = (error?: unknown, user?: unknown, info?: unknown) => void;

/** `verify` as it is most often written. */
export type Verify = (accessToken: string, refreshToken: string, profile: Profile, done: VerifyCallback) => unknown;

/** `verify` with the answer of the token endpoint. */
export type VerifyWithParams = (
  accessToken: string,
  refreshToken: string,
  params: Readonly<Record<string, unknown>>,
  profile: Profile,
  done: VerifyCallback,
) => unknown;

/** `verify` with `passReqToCallback`. Written as a method, so that the request may be typed as the framework's own. */
export type VerifyWithRequest = {
  verify(
    req: IncomingRequest,
    accessToken: string,
    refreshToken: string,
    profile: Profile,
    done: VerifyCallback,
  ): unknown;
}['verify'];

/** `verify` with `passReqToCallback` and the answer of the token endpoint. */
export type VerifyWithRequestAndParams = {
  verify(
    req: IncomingRequest,
    accessToken: string,
    refreshToken: string,
    params: Readonly<Record<string, unknown>>,
    profile: Profile,
    done: VerifyCallback,
  ): unknown;
}['verify'];

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
    // An async verify that throws has nobody else to tell. Its promise may be of another library.
    Promise.resolve(returned).catch(reject);
  });
}
