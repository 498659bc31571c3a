import { ServiceUnavailableError, TokenError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import type { Grant } from '../grants/grant.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { rotatedRefreshToken, type TokenSet } from '../oauth/token-response.js';
import type { Outages } from './outages.js';

/** What asked for a refresh. */
export type RefreshTrigger = RefreshEvent['trigger'];

/** One refresh under way. */
export interface Flight {
  readonly id: string;
  /** What the callers hold. */
  readonly seen: Grant;
  readonly trigger: RefreshTrigger;
  /** What is shown to the service. */
  current?: Grant;
  /** A login or logout came in between: the result is not to be kept in memory. */
  overtaken: boolean;
}

/** What requests are made with. */
export interface RefreshRequestsOptions {
  readonly endpoint: TokenEndpoint;
  readonly outages: Outages;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Called with the refresh token of an answer that could not be used otherwise, in place of the one that was shown. */
  readonly onSuccessor: (flight: Flight, grant: Grant, shown: string, successor: string) => Promise<void>;
}

/** Shows grants' refresh tokens to the service, and keeps count of its bad moments. */
export class RefreshRequests {
  readonly #options: RefreshRequestsOptions;

  constructor(options: RefreshRequestsOptions) {
    this.#options = options;
  }

  /** The answer; `undefined` if the service refused the refresh token, or there is none. @throws whatever keeps the grant and gives no pair */
  async send(flight: Flight, grant: Grant): Promise<TokenSet | undefined> {
    const { refreshToken, previousRefreshToken } = grant;
    const tokens = refreshToken && (await this.#show(flight, grant, refreshToken));
    if (tokens || previousRefreshToken === undefined) return tokens || undefined;
    const again = await this.#show(flight, grant, previousRefreshToken);
    // Where the answer brings none, the one that has just worked stays.
    return again && { ...again, refreshToken: again.refreshToken ?? previousRefreshToken };
  }

  async #show(flight: Flight, grant: Grant, refreshToken: string): Promise<TokenSet | undefined> {
    const { id } = flight;
    const { endpoint, outages, clock } = this.#options;
    try {
      const tokens = await endpoint.refresh(refreshToken);
      outages.answered(id);
      return tokens;
    } catch (error) {
      if (error instanceof ServiceUnavailableError) {
        // Of a grant that is replaced or deleted by now, nothing is to be remembered.
        throw flight.overtaken ? error : outages.failed(id, error, clock());
      }
      outages.answered(id);
      if (error instanceof TokenError && error.error === 'invalid_grant') return undefined;
      const successor = rotatedRefreshToken(error);
      if (successor !== undefined && successor !== refreshToken)
        await this.#options.onSuccessor(flight, grant, refreshToken, successor);
      throw error;
    }
  }
}
