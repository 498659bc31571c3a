import type { IncomingMessage } from 'node:http';
import { ConfigurationError, publicName } from '../errors.js';
import type { Claims } from '../oauth/claims.js';
import type { TokenSet } from '../oauth/token-response.js';

/** The user who logged in, as described by the access token and `userProfile`. */
export interface Profile {
  /** The strategy's name. */
  readonly provider: string;
  /** The tenant, if the strategy is one of many. */
  readonly tenant?: string | undefined;
  /**
   * The `sub` claim of the access token. Without one (opaque tokens have no claims) it is what `userProfile` returns as
   * `id`; if that returns none, the profile has no such property.
   */
  readonly id?: string;
  /** The enterprise organization, if the token or `userProfile` names one. */
  readonly organizationDomain?: string | undefined;
  /** All claims of the access token; empty if it is not a JWT. */
  readonly claims: Claims;
  /** Properties that `userProfile` returned. */
  readonly [more: string]: unknown;
}

/** The callback of `verify`: takes an error, or a user, or `false` and the reason. */
export type VerifyCallback = (error?: unknown, user?: unknown, info?: unknown) => void;

/**
 * `verify`, with the token response or without: `(accessToken, refreshToken, profile, done)`, or
 * `(accessToken, refreshToken, params, profile, done)`. One signature, because TypeScript gives types to the parameters of a
 * function expression by one signature only: a parameter that has two meanings has the properties of both.
 */
export type Verify<UserProfile extends object = object> = (
  accessToken: string,
  refreshToken: string,
  profileOrParams: Profile & UserProfile,
  doneOrProfile: VerifyCallback & Profile & UserProfile,
  done: VerifyCallback,
) => unknown;

/** {@link Verify} with `passReqToCallback`. Declared as a method, so that the request may have the framework's own type. */
export type VerifyWithRequest<UserProfile extends object = object> = {
  verify(
    req: IncomingMessage & Express.Request,
    accessToken: string,
    refreshToken: string,
    profileOrParams: Profile & UserProfile,
    doneOrProfile: VerifyCallback & Profile & UserProfile,
    done: VerifyCallback,
  ): unknown;
}['verify'];

/** Passport's verify callback, of any arity. */
export type AnyVerify = (...args: never[]) => unknown;

/**
 * Calls the application's `verify`, and resolves to its first answer.
 *
 * It accepts the arities of passport-oauth2: with one more parameter, `verify` gets the token response before the profile.
 * The arity is read at each call: NestJS sets it late.
 *
 * @returns `user`: falsy if the user is denied
 * @throws ConfigurationError if a `verify` without the parameter `done` returned a value, which is most likely the user
 */
export function callVerify(
  verify: AnyVerify,
  req: IncomingMessage | undefined,
  tokens: TokenSet,
  profile: Profile,
): Promise<{ readonly user: unknown; readonly info: unknown }> {
  const start = req ? [req, tokens.accessToken, tokens.refreshToken] : [tokens.accessToken, tokens.refreshToken];
  const withParams = verify.length === start.length + 3;
  // Without any parameter it may be a wrapper.
  const lacksDone = verify.length > 0 && verify.length <= start.length + 1;
  return new Promise((resolve, reject) => {
    const done = (error?: unknown, user?: unknown, info?: unknown) => (error ? reject(error) : resolve({ user, info }));
    const args = [...start, ...(withParams ? [tokens.params] : []), profile, done];
    const returned: unknown = (verify as (...args: unknown[]) => unknown)(...args);
    if (returned === undefined) return;
    const onReturn = (value: unknown) => {
      if (!lacksDone || value === undefined) return;
      const message = `verify: expected a function that calls done(error, user), got one without that parameter. What it returns is not used. Write (${req ? 'req, ' : ''}accessToken, refreshToken, profile, done).`;
      reject(new ConfigurationError(message, { option: 'verify' }));
    };
    // An async verify reports an error by its promise alone, which may be another library's.
    Promise.resolve(returned).then(onReturn, reject);
  });
}

/** Says where an `id` comes from. */
export const WHERE_IDS_COME_FROM =
  'profile.id is the claim sub of the access token; opaque tokens have none. Set the option userProfile to a function that reads the user from the service and returns { id }.';

/** Returns the profile of a user as the tokens describe it. Without `verify` it is the user. */
export function profileOf(provider: string, { subject, organizationDomain, claims }: TokenSet): Profile {
  // Properties that the token lacks are left to userProfile. Claims without a domain mean that there is no organization.
  const namesOrganization = organizationDomain !== undefined || Object.keys(claims).length > 0;
  const { strategy, tenant } = publicName(provider);
  // An own property `__proto__`, which JSON can create, would become the prototype of a copy.
  const { __proto__: _proto, ...own } = claims;
  return {
    provider: strategy,
    ...(tenant === undefined ? {} : { tenant }),
    ...(subject === undefined ? {} : { id: subject }),
    ...(namesOrganization ? { organizationDomain } : {}),
    claims: own,
  };
}

/** Adds what the application's `userProfile` returned to the profile. @throws ConfigurationError unless that is an object */
export function mergedProfile(profile: Profile, more: unknown): Profile {
  // What the token says is not for userProfile to change: verify may go by it.
  if (typeof more === 'object' && more !== null) {
    const { __proto__: _proto, ...own }: Readonly<Record<string, unknown>> = { ...more };
    return { ...own, ...profile };
  }
  throw new ConfigurationError(
    `userProfile: expected an object to merge into the profile, got ${more === null ? 'null' : typeof more}`,
    { option: 'userProfile' },
  );
}
