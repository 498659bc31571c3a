import { Deadlines } from '../http/deadlines.js';
import type { HttpClient } from '../http/http-client.js';
import { pause } from '../waiting.js';
import { AccountLimiter, type AccountLimits } from './account-limiter.js';
import { type ApiOrganization, type BaseUrlOptions, BaseUrls } from './base-urls.js';
import { type DefaultHeaders, defaultHeaders } from './request-headers.js';

/** The credential of an API request. Immutable: a refresh creates a new one. */
export interface Credential extends ApiOrganization {
  /** The access token: printable ASCII without white space. */
  readonly accessToken: string;
  /** The user that the token names, if it names one. */
  readonly subject?: string | undefined;
  /** The granted scopes; `undefined` if unknown. */
  readonly scope?: readonly string[] | undefined;
}

/** Provides a credential for each request of an API client. */
export interface CredentialSource {
  /** `undefined` without a grant. */
  readonly grantId: string | undefined;
  /** False once it is known that there is no grant. An outage of a store or of the service does not count. */
  readonly authorized: boolean;
  /** True once the service has refused to renew the grant. It is kept, but only another login helps its user. */
  readonly isRefused?: boolean;
  /** The credential last seen, without I/O; `undefined` before the first. */
  readonly last?: Credential | undefined;
  /**
   * Returns a credential that is valid now, after a refresh if one is due. Synchronous if it is at hand.
   *
   * @throws NotAuthorizedError, TokenError, TokenResponseError, ServiceUnavailableError, TokenStoreError, ConfigurationError
   */
  credential(): Credential | Promise<Credential>;
  /** True if the first credential was not refreshed, though it may have expired. */
  readonly mayBeExpired?: boolean;
  /**
   * Refreshes a credential that has expired. Afterwards `authorized` is true only if the service still accepts the grant. Never
   * rejects. Returns `undefined` if there is nothing to wait for.
   */
  prepareFully?(): Promise<void> | undefined;
  /**
   * Returns a newer credential after the API rejected `refused`, or `refused` itself during the cool-down. A source that cannot
   * refresh leaves it out.
   *
   * @param isDead True if the API says only that the token is invalid: a grant that cannot get another one ends
   * @throws like {@link credential}
   */
  renew?(refused: Credential, isDead?: boolean): Promise<Credential>;
  /** Reports whether the API accepted a credential of `renew`. */
  reportOutcome?(renewed: Credential, accepted: boolean): void;
}

/** Shared by all API clients of a strategy. */
export interface ApiContext {
  readonly http: HttpClient;
  readonly bases: BaseUrls;
  /** For one HTTP request. */
  readonly timeoutMs: number;
  readonly limiter: AccountLimiter;
  readonly headers: DefaultHeaders;
  /** In lower case, and what precedes the token. */
  readonly tokenHeader: { readonly name: string; readonly prefix: string };
  readonly strategyName: string;
  /** Maximum size of a parsed response. Default: 64 MiB. */
  readonly maxResponseBytes: number;
  /** Of whole calls and of queues. */
  readonly deadlines: Deadlines;
  /** Epoch milliseconds. Default: `Date.now`. */
  readonly now: () => number;
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random: () => number;
  /** Waits between tries; rejects with the signal's reason. Default: a timer. */
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** What a client is made of. */
export interface ClientParts {
  readonly source: CredentialSource;
  readonly context: ApiContext;
}

/** Options of {@link createApiContext}: those of the strategy, already checked, and what a test sets. */
export interface ApiContextOptions extends Pick<ApiContext, 'http' | 'timeoutMs' | 'strategyName'>, BaseUrlOptions {
  readonly maxResponseBytes?: number | undefined;
  readonly now?: ApiContext['now'] | undefined;
  readonly random?: ApiContext['random'] | undefined;
  readonly wait?: ApiContext['wait'] | undefined;
  /** Header of the bare access token. Default: `Authorization`, with the scheme `Bearer`. */
  readonly accessTokenHeader?: string | undefined;
  readonly concurrency?: number | undefined;
  readonly sharing?: AccountLimits['sharing'];
  /** Names and values in turn. */
  readonly headers?: readonly string[] | undefined;
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;

/** RFC 6750, 2.1. */
const BEARER = { name: 'authorization', prefix: 'Bearer ' };

/** Creates the context of a strategy's API clients, which share its limits. */
export function createApiContext(options: ApiContextOptions): ApiContext {
  const { http, timeoutMs, strategyName, sharing, accessTokenHeader: tokenHeader } = options;
  const { concurrency: max = Infinity } = options;
  const deadlines = new Deadlines();
  return Object.freeze({
    http,
    bases: new BaseUrls(options),
    timeoutMs,
    limiter: new AccountLimiter({ max, deadlines, patienceMs: timeoutMs, sharing }),
    headers: defaultHeaders(options.headers),
    tokenHeader: tokenHeader === undefined ? BEARER : { name: tokenHeader, prefix: '' },
    strategyName,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_BYTES,
    deadlines,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    wait: options.wait ?? ((ms: number, signal: AbortSignal | undefined) => pause(ms, { signal })),
  });
}
