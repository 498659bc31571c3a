import type { ApiClient } from '../api/api-client.js';
import { ConfigurationError } from '../errors.js';
import type { Claims } from '../oauth/claims.js';
import type { TokenSet } from '../oauth/token-response.js';

/** Who logged in, as far as the access token and `userProfile` say. */
export interface Profile {
  /** The strategy's name. */
  readonly provider: string;
  /** The `sub` claim, where there is one. */
  readonly id: string | undefined;
  /** The enterprise organization, where the token names one. */
  readonly organizationDomain: string | undefined;
  /** All claims of the access token; none where it is no JWT. */
  readonly claims: Claims;
  /** What `userProfile` returned. */
  readonly [more: string]: unknown;
}

/** The profile of a token set, with what the application's `userProfile` adds to it. */
export async function loadProfile(
  provider: string,
  tokens: TokenSet,
  userProfile: ((client: ApiClient) => Promise<object>) | undefined,
  client: () => ApiClient,
): Promise<Profile> {
  const { subject: id, organizationDomain, claims } = tokens;
  const known: Profile = { provider, id, organizationDomain, claims };
  if (!userProfile) return known;
  const more: unknown = await userProfile(client());
  if (typeof more === 'object' && more !== null) return { ...known, ...more };
  throw new ConfigurationError(
    `userProfile: expected an object to merge into the profile, got ${more === null ? 'null' : typeof more}`,
    {
      option: 'userProfile',
    },
  );
}
