import { ServiceUnavailableError, TokenResponseError } from '../errors.js';
import type { HttpClient } from '../http/http-client.js';
import type { HttpRequest, HttpResponse } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import type { Secret } from '../secret.js';
import type { OrganizationDomainReader } from './claims.js';
import { readTokenResponse, type TokenSet } from './token-response.js';

/** What the token endpoint is called with. */
export interface TokenEndpointOptions {
  readonly http: HttpClient;
  /** `{auth_url}`, without a trailing slash. */
  readonly authUrl: string;
  readonly clientID: string;
  readonly clientSecret: Secret;
  /** For one HTTP request, connect to last byte. */
  readonly timeoutMs: number;
  readonly organizationDomain: OrganizationDomainReader;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** What the callback brought, and what the authorization request was made with. */
export interface AuthorizationCode {
  readonly code: string;
  /** The very one of the authorization request (RFC 6749, 4.1.3). */
  readonly redirectUri: string;
  /** With PKCE (RFC 7636, 4.5). */
  readonly codeVerifier?: string | undefined;
}

/** Most of an answer's body, after decoding. A token response has a few kilobytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

const HEADERS = ['content-type', 'application/json', 'accept', 'application/json'];

/**
 * The service's token endpoint, which takes JSON.
 *
 * Both calls reject with `TokenError`, `TokenResponseError` or `ServiceUnavailableError`.
 */
export class TokenEndpoint {
  readonly #options: TokenEndpointOptions;
  readonly #origin: string;
  readonly #path: string;

  constructor(options: TokenEndpointOptions) {
    const url = new URL(`${options.authUrl}/oauth/token`);
    this.#options = options;
    this.#origin = url.origin;
    this.#path = url.pathname;
  }

  /** Exchanges an authorization code for tokens. @see service.md, 4.2; RFC 6749, 4.1.3 */
  exchangeCode({ code, redirectUri, codeVerifier }: AuthorizationCode): Promise<TokenSet> {
    const proof = codeVerifier === undefined ? {} : { code_verifier: codeVerifier };
    return this.#request('authorization_code', { redirect_uri: redirectUri, code, ...proof }, [
      code,
      codeVerifier ?? '',
    ]);
  }

  /** Exchanges a refresh token for a new pair. The old refresh token is dead afterwards. @see service.md, 4.3; RFC 6749, 6 */
  refresh(refreshToken: string): Promise<TokenSet> {
    return this.#request('refresh_token', { refresh_token: refreshToken }, [refreshToken]);
  }

  async #request(
    grantType: string,
    fields: Readonly<Record<string, string>>,
    secrets: readonly string[],
  ): Promise<TokenSet> {
    const { clientID, clientSecret, organizationDomain, clock } = this.#options;
    const secret = clientSecret.reveal();
    const body = JSON.stringify({ grant_type: grantType, client_id: clientID, client_secret: secret, ...fields });
    const response = await this.#send(body);
    return readTokenResponse(response, { organizationDomain, now: clock(), secrets: [...secrets, secret] });
  }

  async #send(body: string): Promise<HttpResponse> {
    try {
      return await this.#sendOnce(body);
    } catch (error) {
      // Only a request that never left may go again: a code or refresh token that was used is dead.
      if (error instanceof TransportError && !error.left && error.kind === 'connect') {
        return await this.#sendOnce(body).catch((again: unknown) => Promise.reject(failure(again)));
      }
      throw failure(error);
    }
  }

  #sendOnce(body: string): Promise<HttpResponse> {
    const request: HttpRequest = {
      origin: this.#origin,
      path: this.#path,
      method: 'POST',
      headers: HEADERS,
      body,
      timeoutMs: this.#options.timeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
    };
    return this.#options.http.send(request);
  }
}

function failure(error: unknown): Error {
  if (!(error instanceof TransportError)) return error instanceof Error ? error : new Error('The HTTP client failed');
  if (error.kind === 'too-large' || error.kind === 'encoding') {
    return new TokenResponseError(
      `The token endpoint answered with ${error.kind === 'encoding' ? 'a content encoding that cannot be read' : `more than ${MAX_ANSWER_BYTES} bytes`}. Nothing of it was kept.`,
      { cause: error },
    );
  }
  return new ServiceUnavailableError(
    error.left ? 'The token endpoint did not answer in full.' : 'The token endpoint could not be reached.',
    { cause: error },
  );
}
