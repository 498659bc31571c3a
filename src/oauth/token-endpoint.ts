import { randomBytes } from 'node:crypto';
import * as check from '../checks.js';
import { ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import type { HttpClient } from '../http/http-client.js';
import type { HttpResponse } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { endpointUrl } from './addresses.js';
import { ClientRequest, type ClientRequestOptions } from './client-request.js';
import { Pauses } from './pauses.js';
import { type EndsGrant, matchingCondition, type Refusal, shownBody, UNRECOGNIZED } from './refusal.js';
import { RequestQueue, type Turn } from './request-queue.js';
import {
  grantedScope,
  readTokenResponse,
  responseFactsOf,
  type TokenReading,
  type TokenSet,
  withFacts,
} from './token-response.js';

/** How a token request is sent. */
export interface TokenRequestOptions {
  /** Asked before a request that could not be sent is repeated: the first try may have taken long. */
  readonly mayRepeat?: () => boolean;
  /** The request's slot. Default: it is sent at once, and takes none. */
  readonly turn?: Turn | undefined;
  /** True while the access token is valid: a refusal may mean that it is too early, and is not reported. */
  readonly isEarly?: boolean;
}

/** Options of a {@link TokenEndpoint}. */
export interface TokenEndpointOptions extends ClientRequestOptions, TokenReading {
  readonly http: HttpClient;
  /** A path below `authUrl`, or a whole URL. */
  readonly tokenPath: string;
  /** Default: `invalid_grant` ends a grant, and another refusal is reported when it repeats. */
  readonly endsGrant?: EndsGrant | undefined;
  readonly tokenParams?: TokenParams | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** More parameters of token requests, such as `resource`, `audience` or `scope`: an object, or a function that returns one. */
export type TokenParams =
  | Readonly<Record<string, string>>
  | ((request: { readonly grantType: string }) => Readonly<Record<string, string>>);

/** Parameters of a token request, without the client's ID and secret. */
export interface TokenParameters {
  readonly grant_type: string;
  readonly [name: string]: string | number;
}

/**
 * Returns the parameters of the token request for a grant that belongs to the application, such as
 * `{ grant_type: 'client_credentials', scope: 'project' }` (RFC 6749, 4.4); `undefined` for the grant of a user.
 */
export type ApplicationGrant = (grantId: string) => TokenParameters | undefined | Promise<TokenParameters | undefined>;

/** The code of a callback, and parameters of its authorization request. */
export interface AuthorizationCode {
  readonly code: string;
  /** Exactly that of the authorization request (RFC 6749, 4.1.3); `undefined` for a code that did not come from a login. */
  readonly redirectUri?: string | undefined;
  /** With PKCE (RFC 7636, 4.5). */
  readonly codeVerifier?: string | undefined;
  /** Granted if the token response states no scope (RFC 6749, 5.1); `undefined` if unknown. */
  readonly scope?: readonly string[] | undefined;
}

/** Refusals of a refresh that say nothing about the refresh token (RFC 6749, 5.2). */
const ABOUT_THE_CLIENT: ReadonlySet<string | undefined> = new Set([
  ...['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'],
]);

/** Maximum number of refused refresh tokens that are remembered. */
const MAX_REFUSED = 100;

/** Refusals of a code that may mean that the body has the wrong format (RFC 6749, 5.2). */
const ABOUT_THE_FORMAT: ReadonlySet<string | undefined> = new Set(['invalid_request', 'unsupported_grant_type']);

const FORMAT_ADVICE = {
  json: " If the service takes form bodies (RFC 6749), set tokenRequest: 'form'.",
  form: " If the service takes JSON bodies, set tokenRequest: 'json'.",
} as const;

const TWO_READINGS =
  " Servers read some of their characters in two ways: clientAuthentication 'basic' form-encodes them (RFC 6749, 2.3.1), 'basic-raw' does not, for servers that do not decode.";

/** Client of the service's token endpoint. Its calls reject with `TokenError`, `TokenResponseError` or `ServiceUnavailableError`. */
export class TokenEndpoint {
  /** Time limit of one request, in milliseconds. */
  readonly timeoutMs: number;
  readonly origin: string;
  /** Identifies this client, and with it this process, in the grants that it obtains. */
  readonly id: string = randomBytes(6).toString('base64url');
  readonly pauses: Pauses;
  readonly queue: RequestQueue;
  readonly #options: TokenEndpointOptions;
  readonly #request: ClientRequest;
  /** Refresh tokens that were refused without ending their grant; `undefined` once that was reported. */
  #refused: Set<string> | undefined = new Set();

  constructor(options: TokenEndpointOptions) {
    const { authUrl, tokenPath, timeoutMs, clock } = options;
    this.timeoutMs = timeoutMs;
    this.origin = endpointUrl(authUrl, tokenPath).origin;
    this.pauses = new Pauses(clock);
    this.queue = new RequestQueue(timeoutMs);
    this.#options = options;
    this.#request = new ClientRequest(options, tokenPath);
  }

  /** Exchanges an authorization code for tokens, without a slot: a code is short-lived. @see RFC 6749, 4.1.3 */
  async exchangeCode({ code, redirectUri, codeVerifier, scope }: AuthorizationCode): Promise<TokenSet> {
    const target = redirectUri === undefined ? {} : { redirect_uri: redirectUri };
    const proof = codeVerifier === undefined ? {} : { code_verifier: codeVerifier };
    // Anyone can send a code that does not come from a login. It must not pause the refreshes of all users.
    const pauses = redirectUri === undefined ? undefined : this.pauses;
    try {
      const tokens = await this.#send('authorization_code', { ...target, code, ...proof });
      pauses?.acceptClient();
      return { ...tokens, scope: tokens.scope ?? scope };
    } catch (error) {
      pauses?.loginFailed(error);
      throw error;
    }
  }

  /**
   * Exchanges a refresh token for a new pair; one that the response does not replace stays valid. Resolves to `undefined` if
   * the refresh token is dead: after `invalid_grant`, or as the option `endsGrant` decides.
   *
   * @see RFC 6749, 6
   */
  async refresh(refreshToken: string, options?: TokenRequestOptions): Promise<TokenSet | undefined> {
    try {
      const tokens = await this.#send('refresh_token', { refresh_token: refreshToken }, options);
      return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken, lifetimeMs: tokens.renewableLifetimeMs };
    } catch (error) {
      const facts = responseFactsOf(error);
      const { refusal } = facts;
      if (!refusal || !(error instanceof Error)) throw error;
      const { endsGrant } = this.#options;
      const ends = endsGrant
        ? check.invoke('endsGrant', 'true or false', () => endsGrant(refusal))
        : refusal.error === 'invalid_grant';
      if (ends) return undefined;
      if (!endsGrant && !options?.isEarly) this.#noteRefusal(refreshToken, refusal);
      // A refusal without an OAuth error is still a refusal.
      throw error instanceof TokenError
        ? error
        : withFacts(new TokenError(error.message, { error: UNRECOGNIZED }), facts);
    }
  }

  /** Requests tokens for the application itself. Drops a refresh token in the response: the request can be repeated. @see RFC 6749, 4.4 and 4.5 */
  async requestTokens({ grant_type, ...fields }: TokenParameters, options?: TokenRequestOptions): Promise<TokenSet> {
    const tokens = await this.#send(grant_type, fields, options);
    const { scope = grantedScope(fields.scope), renewableLifetimeMs: lifetimeMs } = tokens;
    return { ...tokens, scope, lifetimeMs, refreshToken: undefined, refreshTokenLifetimeMs: undefined };
  }

  #advice(grantType: string, error: string | undefined, status: number): string {
    const isRefresh = grantType === 'refresh_token';
    if (error === 'invalid_client' || (error === undefined && status === 401 && !isRefresh))
      return ` Check the options clientID and clientSecret.${this.#request.isAmbiguous ? TWO_READINGS : ''}`;
    if (status === 415 || (!isRefresh && ABOUT_THE_FORMAT.has(error))) return FORMAT_ADVICE[this.#options.tokenRequest];
    if (!isRefresh || ABOUT_THE_CLIENT.has(error) || this.#options.endsGrant) return '';
    return ' If that means that the refresh token is dead, set the option endsGrant.';
  }

  /** Warns once about a refresh token that is refused again: if it is dead, its user is stuck. */
  #noteRefusal(refreshToken: string, refusal: Refusal): void {
    if (!this.#refused || ABOUT_THE_CLIENT.has(refusal.error)) return;
    if (!this.#refused.has(refreshToken)) {
      this.#refused.add(refreshToken);
      const [oldest = ''] = this.#refused;
      if (this.#refused.size > MAX_REFUSED) this.#refused.delete(oldest);
      return;
    }
    this.#refused = undefined;
    const found = `with status ${refusal.status} and ${shownBody(refusal)}`;
    const condition = `({ error, description, status, body }) => error === 'invalid_grant' || (${matchingCondition(refusal)})`;
    process.emitWarning(
      `The token endpoint refused the same refresh token again, ${found}. The grant is kept, and each refresh fails. ` +
        `If this answer means that the refresh token is dead, set the option endsGrant, such as ${condition}`,
      { code: 'ERR_REFRESH_REFUSED' },
    );
  }

  async #send(
    grantType: string,
    fields: Readonly<Record<string, string | number>>,
    { mayRepeat, turn }: TokenRequestOptions = {},
  ): Promise<TokenSet> {
    const { http, clock, tokenParams } = this.#options;
    const params =
      typeof tokenParams === 'function'
        ? check.tokenParams(
            'tokenParams',
            check.invoke('tokenParams', 'parameters', () => tokenParams({ grantType })),
          )
        : (tokenParams ?? {});
    const parameters = { ...params, ...fields };
    const request = this.#request.with({ grant_type: grantType }, parameters);
    const send = async (isRepeated = false): Promise<HttpResponse> => {
      try {
        return await http.send(request);
      } catch (error) {
        if (!(error instanceof TransportError)) throw error;
        // Status and headers of a refusal count even if its body cannot be read.
        if (error.response) return error.response;
        // Only a request that was not sent may be repeated: a code or a rotating refresh token works once.
        if (isRepeated || error.kind !== 'connect' || mayRepeat?.() === false) throw unanswered(error);
        return await send(true);
      }
    };
    const response = await (turn ? this.queue.send(turn, send) : send());
    return readTokenResponse(response, this.#options, {
      now: clock(),
      secrets: () => [...secretsOf(grantType, parameters), ...this.#request.secrets],
      advice: (error, status) => this.#advice(grantType, error, status),
    });
  }
}

/** Parameters that an error message may quote. */
const PUBLIC: ReadonlySet<string> = new Set(['scope', 'resource', 'audience']);

/** Parameters that none may quote, however short. */
const SECRET: ReadonlySet<string> = new Set([
  ...['code', 'code_verifier', 'refresh_token', 'password', 'device_code'],
  ...['assertion', 'client_assertion', 'subject_token', 'actor_token'],
]);

/** Returns the parameters that may be secrets. Other short ones, such as ids, occur in other words. */
function secretsOf(grantType: string, parameters: Readonly<Record<string, string | number>>): readonly string[] {
  const isPublic = (name: string) =>
    PUBLIC.has(name) || (name === 'redirect_uri' && grantType === 'authorization_code');
  const texts = Object.entries(parameters).map(([name, value]) => [name, `${value}`] as const);
  return texts.flatMap(([name, text]) => (SECRET.has(name) || (!isPublic(name) && text.length >= 8) ? text : []));
}

function unanswered(error: TransportError): Error {
  if (error.kind === 'too-large')
    return new TokenResponseError('The token endpoint answered with too many headers.', { cause: error });
  const message = error.sent
    ? `No complete response from the token endpoint at ${error.host}.`
    : `Could not reach the token endpoint at ${error.host}.`;
  return new ServiceUnavailableError(message, { cause: error });
}
