/** Details of an error. */
export interface ErrorDetails {
  /** Stable identifier that starts with `ERR_`. */
  readonly code: string;
  /** HTTP status that the application should respond with. Express does so by itself. */
  readonly status: number;
  /** The underlying error, without secrets: see `safeCause`. */
  readonly cause?: unknown;
}

/** Details of an error that has a default code. */
interface Details {
  readonly code?: string;
  readonly cause?: unknown;
}

/**
 * Base class of all errors of this package.
 *
 * Message, stack, properties and cause never hold a token, an authorization code, the client secret or a code verifier.
 */
export abstract class OAuthAppError extends Error {
  abstract override readonly name: string;
  /** Stable identifier that starts with `ERR_`. */
  readonly code: string;
  /** HTTP status that the application should respond with. */
  readonly status: number;
  /** Name of the strategy that the error concerns; `undefined` if it concerns none. */
  declare readonly strategy?: string;

  constructor(message: string, { code, status, cause }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
  }

  /** Same as `status`. NestJS and other frameworks read this name. */
  get statusCode(): number {
    return this.status;
  }
}

/** Reports a mistake in the application's configuration. Thrown at creation wherever possible. */
export class ConfigurationError extends OAuthAppError {
  override readonly name = 'ConfigurationError';
  /** Name of the wrong option; `undefined` if no single option is wrong. */
  readonly option: string | undefined;

  constructor(message: string, details: Details & { readonly option?: string } = {}) {
    super(message, { code: details.code ?? 'ERR_CONFIGURATION', status: 500, cause: details.cause });
    this.option = details.option;
  }
}

/**
 * Reports that the authorization endpoint redirected the browser back with an error other than `access_denied`.
 *
 * @see RFC 6749, 4.1.2.1
 */
export class AuthorizationError extends OAuthAppError {
  override readonly name = 'AuthorizationError';
  /** The `error` parameter if it has the form of an error code: 1 to 64 letters, digits, `_`, `.` and `-`. */
  readonly error: string | undefined;
  /** The `error_description` parameter. Anyone may have written it. Not enumerable, so that logs leave it out. */
  declare readonly description: string | undefined;

  constructor(
    message: string,
    details: {
      readonly error?: string | undefined;
      readonly description?: string | undefined;
      readonly code?: string;
      readonly status?: number;
    } = {},
  ) {
    super(message, { code: details.code ?? 'ERR_AUTHORIZATION', status: details.status ?? 502 });
    this.error = details.error;
    Object.defineProperty(this, 'description', { value: details.description });
  }
}

/** Reports that the token endpoint refused the request. @see RFC 6749, 5.2 */
export class TokenError extends OAuthAppError {
  override readonly name = 'TokenError';
  /** The `error` of the response, for example `invalid_grant`. */
  readonly error: string;

  constructor(message: string, details: { readonly error: string; readonly status?: number }) {
    super(message, { code: 'ERR_TOKEN_REFUSED', status: details.status ?? 502 });
    this.error = details.error;
  }
}

/** Reports a response of the token endpoint that is not a valid token response. @see RFC 6749, 5.1 */
export class TokenResponseError extends OAuthAppError {
  override readonly name = 'TokenResponseError';

  constructor(message: string, details: Details = {}) {
    super(message, { code: details.code ?? 'ERR_TOKEN_RESPONSE', status: 502, cause: details.cause });
  }
}

/** Reports that the service cannot be reached, did not respond in time, or responded that it is overloaded or broken. */
export class ServiceUnavailableError extends OAuthAppError {
  override readonly name = 'ServiceUnavailableError';
  /** Seconds to wait before the next attempt, rounded up. */
  readonly retryAfter: number | undefined;
  /** Of an API call: true if a request may have reached the service, false if none was sent. */
  readonly sent: boolean | undefined;

  constructor(
    message: string,
    details: Details & { readonly retryAfter?: number | undefined; readonly sent?: boolean | undefined } = {},
  ) {
    super(message, { code: details.code ?? 'ERR_SERVICE_UNAVAILABLE', status: 503, cause: details.cause });
    this.retryAfter = details.retryAfter === undefined ? undefined : Math.ceil(details.retryAfter);
    this.sent = details.sent;
  }
}

/**
 * Reports that there is no grant: no user logged in, or the grant was revoked, refused or deleted. With the code
 * `ERR_INSUFFICIENT_SCOPE` and status 403: that the grant lacks scopes which the route requires.
 */
export class NotAuthorizedError extends OAuthAppError {
  override readonly name = 'NotAuthorizedError';
  /** The scopes that are missing; `undefined` if there is no grant. */
  readonly scope: readonly string[] | undefined;
  /** The scopes that the service has granted; `undefined` if there is no grant. */
  readonly granted: readonly string[] | undefined;

  constructor(
    message: string,
    details: Details & {
      readonly status?: number;
      readonly scope?: readonly string[] | undefined;
      readonly granted?: readonly string[] | undefined;
    } = {},
  ) {
    const { code = 'ERR_NOT_AUTHORIZED', status = 401, cause } = details;
    super(message, { code, status, cause });
    this.scope = details.scope;
    this.granted = details.granted;
  }
}

/** Reports that `forward` did not pass a request on. Nothing was sent. */
export class ForwardError extends OAuthAppError {
  override readonly name = 'ForwardError';
}

/** Reports that the token store failed. The grant is kept and usable again as soon as the store works. */
export class TokenStoreError extends OAuthAppError {
  override readonly name = 'TokenStoreError';

  constructor(message: string, details: Details = {}) {
    super(message, { code: details.code ?? 'ERR_TOKEN_STORE', status: 503, cause: details.cause });
  }
}

/** Returns the error for the use of a closed strategy. */
export function closedError(): ConfigurationError {
  return new ConfigurationError(
    'The strategy is closed: close() was called, and nothing works after it. Create another strategy, or close it when the process ends.',
    { code: 'ERR_CLOSED' },
  );
}

/** Copies an error of this package, since callers that waited for one result may change it. Returns other values unchanged. */
export function cloneError(error: unknown): unknown {
  if (!(error instanceof OAuthAppError)) return error;
  // The constructor of each class accepts the fields of its instances as details.
  const Class = error.constructor as new (message: string, details: OAuthAppError) => OAuthAppError;
  return ofStrategy(new Class(error.message, error), error.strategy);
}

/** Adds the strategy's name to an error of this package that has none yet. Returns the error, or any other value, as it is. */
export function ofStrategy<E>(error: E, strategy: string | undefined): E {
  if (error instanceof OAuthAppError && error.strategy === undefined && strategy !== undefined) {
    const value = publicName(strategy).strategy;
    Object.defineProperty(error, 'strategy', { value, enumerable: true, configurable: true });
  }
  return error;
}

/** Separates a strategy's name from a tenant. The option `name` is ASCII, so it cannot contain it. */
const MARK = '\u00bb';

/** Returns the name of a tenant's strategy: its key in sessions, cookies and the token store. */
export function nameOfTenant(name: string, tenant: string): string {
  return `${name}${MARK}${tenant}`;
}

/** A strategy's name as the application knows it. */
export interface PublicName {
  readonly strategy: string;
  /** The tenant, of a strategy that `tenants()` created. */
  readonly tenant?: string;
}

/** Splits the name of a tenant's strategy. */
export function publicName(name: string): PublicName {
  const [strategy = name, tenant] = name.split(MARK);
  return tenant === undefined ? { strategy } : { strategy, tenant };
}
