import { ServiceUnavailableError, TokenError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import type { Grant } from '../grants/grant.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { rotatedRefreshToken, type TokenSet } from '../oauth/token-response.js';
import type { EndpointBackoff } from './backoff.js';

/** What asked for a refresh. */
export type RefreshTrigger = RefreshEvent['trigger'];

/** A refresh that runs. */
export interface RefreshInFlight {
  readonly id: string;
  /** The grant that the callers hold. */
  readonly seen: Grant;
  readonly trigger: RefreshTrigger;
  /** The grant whose refresh token was sent last. */
  current?: Grant;
  /** True once a login or logout has come in between: the result is not kept in memory. */
  isOvertaken: boolean;
}

/** Parts of {@link RefreshRequests}. */
export interface RefreshRequestsOptions {
  readonly endpoint: TokenEndpoint;
  readonly backoff: EndpointBackoff;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Saves a refresh token that came in a token response that is otherwise unusable. Never rejects. */
  readonly onRotated: (refresh: RefreshInFlight, sent: Grant, rotated: string) => Promise<void>;
}

/** Sends refresh tokens to the token endpoint, and records whether it answers. */
export class RefreshRequests {
  readonly #options: RefreshRequestsOptions;

  constructor(options: RefreshRequestsOptions) {
    this.#options = options;
  }

  /**
   * Sends the grant's refresh token, and the previous one if the service refuses it. Returns `undefined` if it refuses both.
   *
   * @throws ServiceUnavailableError, TokenResponseError or TokenError if the grant may still be valid
   */
  async send(refresh: RefreshInFlight, grant: Grant): Promise<TokenSet | undefined> {
    const { refreshToken, previousRefreshToken } = grant;
    const tokens = refreshToken === undefined ? undefined : await this.#sendOne(refresh, grant, refreshToken);
    if (tokens || previousRefreshToken === undefined) return tokens;
    const again = await this.#sendOne(refresh, grant, previousRefreshToken);
    // If the response brings no refresh token, the one that has just worked stays valid.
    return again && { ...again, refreshToken: again.refreshToken ?? previousRefreshToken };
  }

  async #sendOne(refresh: RefreshInFlight, grant: Grant, refreshToken: string): Promise<TokenSet | undefined> {
    const { endpoint, backoff, clock, onRotated } = this.#options;
    try {
      const tokens = await endpoint.refresh(refreshToken);
      backoff.succeed(refresh.id);
      return tokens;
    } catch (error) {
      if (error instanceof ServiceUnavailableError) {
        // Nothing is remembered of a grant that has been replaced or deleted.
        throw refresh.isOvertaken ? error : backoff.fail(refresh.id, error, clock());
      }
      backoff.succeed(refresh.id);
      if (error instanceof TokenError && error.error === 'invalid_grant') return undefined;
      const rotated = rotatedRefreshToken(error);
      if (rotated !== undefined && rotated !== refreshToken)
        await onRotated(refresh, { ...grant, refreshToken }, rotated);
      throw error;
    }
  }
}
