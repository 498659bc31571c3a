import { ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import { type Grant, isIssuer, tenantChanged } from '../grants/grant.js';
import type { HttpClient } from '../http/http-client.js';
import { TransportError } from '../http/transport-error.js';
import { endpointUrl } from '../oauth/addresses.js';
import { parseJsonObject } from '../oauth/claims.js';
import { ClientRequest, type ClientRequestOptions } from '../oauth/client-request.js';
import { outageOf } from '../oauth/token-response.js';

/** Options of a {@link RevocationEndpoint}. */
export interface RevocationEndpointOptions extends ClientRequestOptions {
  readonly http: HttpClient;
  /** A path below `authUrl`, or a whole URL. */
  readonly revocationPath: string;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

type RevocableTokens = Pick<Grant, 'accessToken' | 'refreshToken' | 'issuedBy'>;

/** Client of the service's revocation endpoint. @see RFC 7009 */
export class RevocationEndpoint {
  readonly #options: RevocationEndpointOptions;
  readonly #request: ClientRequest;

  constructor(options: RevocationEndpointOptions) {
    this.#options = options;
    this.#request = new ClientRequest(options, options.revocationPath);
  }

  /**
   * Revokes the refresh token, which ends the grant at the service; without one, the access token.
   *
   * @throws TokenError if the service refuses; ServiceUnavailableError if a retry makes sense; TokenResponseError for any other
   *   answer
   * @see RFC 7009, 2.1 and 2.2
   */
  async revoke({ accessToken, refreshToken, issuedBy }: RevocableTokens): Promise<void> {
    const { http, clock, authUrl, revocationPath } = this.#options;
    if (!isIssuer(issuedBy, endpointUrl(authUrl, revocationPath).origin)) throw tenantChanged();
    const hint = refreshToken === undefined ? 'access_token' : 'refresh_token';
    const request = this.#request.with({ token: refreshToken ?? accessToken, token_type_hint: hint });
    const response = await http.send(request).catch((error: unknown) => {
      if (!(error instanceof TransportError)) throw error;
      throw new ServiceUnavailableError('The revocation endpoint did not answer in full.', { cause: error });
    });
    const outage = outageOf('revocation endpoint', response, clock());
    if (outage) throw outage;
    const { status, body } = response;
    const error = parseJsonObject(body)?.error;
    // An unknown token needs no revocation. RFC 7009 answers with 200; some services with this.
    if (error === 'invalid_token') return;
    if (typeof error === 'string' || (status >= 400 && status < 500)) {
      const message = `The revocation endpoint refused the request with status ${status}.`;
      throw new TokenError(message, { error: 'unrecognized_error' });
    }
    if (status < 200 || status > 299)
      throw new TokenResponseError(`The revocation endpoint answered with status ${status}.`);
  }
}
