/** What every error of this package takes beside its message. */
export interface ErrorDetails {
  /** Stable identifier, for code that must tell errors apart. Starts with `ERR_`. */
  readonly code: string;
  /** The HTTP status that an application should answer with; Express does so by itself. */
  readonly status: number;
  /** What went wrong underneath. Holds no secret: see `safeCause`. */
  readonly cause?: unknown;
}

/**
 * The base of all errors of this package.
 *
 * No message, stack, property or cause of any of them holds a token, a code, the client secret or a verifier.
 */
export abstract class OAuthAppError extends Error {
  abstract override readonly name: string;
  /** Stable identifier, for code that must tell errors apart. */
  readonly code: string;
  /** The HTTP status that an application should answer with. */
  readonly status: number;

  constructor(message: string, { code, status, cause }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
  }

  /** The same as `status`, under the name where NestJS and others look. */
  get statusCode(): number {
    return this.status;
  }
}

/** The application is set up wrongly. Thrown when things are created wherever that is possible. */
export class ConfigurationError extends OAuthAppError {
  override readonly name = 'ConfigurationError';
  /** The option that is wrong, where it is one option. */
  readonly option: string | undefined;

  constructor(
    message: string,
    details: { readonly option?: string; readonly code?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { code: details.code ?? 'ERR_CONFIGURATION', status: 500, cause: details.cause });
    this.option = details.option;
  }
}

/** The authorization endpoint sent the browser back with an error other than `access_denied` (RFC 6749, 4.1.2.1). */
export class AuthorizationError extends OAuthAppError {
  override readonly name = 'AuthorizationError';
  /** The `error` parameter if it is one that RFC 6749 or OpenID Connect registers, else `undefined`. */
  readonly error: string | undefined;

  constructor(
    message: string,
    details: { readonly error?: string | undefined; readonly code?: string; readonly status?: number } = {},
  ) {
    super(message, { code: details.code ?? 'ERR_AUTHORIZATION', status: details.status ?? 502 });
    this.error = details.error;
  }
}

/** The token endpoint refused the request (RFC 6749, 5.2). */
export class TokenError extends OAuthAppError {
  override readonly name = 'TokenError';
  /** The service's `error`, for example `invalid_grant`. */
  readonly error: string;

  constructor(message: string, details: { readonly error: string; readonly status?: number }) {
    super(message, { code: 'ERR_TOKEN_REFUSED', status: details.status ?? 502 });
    this.error = details.error;
  }
}

/** The token endpoint answered with something that cannot be used. */
export class TokenResponseError extends OAuthAppError {
  override readonly name = 'TokenResponseError';

  constructor(message: string, details: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, { code: details.code ?? 'ERR_TOKEN_RESPONSE', status: 502, cause: details.cause });
  }
}

/** The service could not be reached, did not answer in time, or said that it is overloaded or broken. */
export class ServiceUnavailableError extends OAuthAppError {
  override readonly name = 'ServiceUnavailableError';
  /** Seconds after which a new try makes sense. */
  readonly retryAfter: number | undefined;
  /** Of an API call: true if a request may have reached the service, false if none was sent. */
  readonly sent: boolean | undefined;

  constructor(
    message: string,
    details: {
      readonly retryAfter?: number | undefined;
      readonly code?: string;
      readonly cause?: unknown;
      readonly sent?: boolean | undefined;
    } = {},
  ) {
    super(message, { code: details.code ?? 'ERR_SERVICE_UNAVAILABLE', status: 503, cause: details.cause });
    this.retryAfter = details.retryAfter;
    this.sent = details.sent;
  }
}

/** There is no grant to act with: nobody logged in, or the grant was revoked, refused or deleted. */
export class NotAuthorizedError extends OAuthAppError {
  override readonly name = 'NotAuthorizedError';

  constructor(message: string, details: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, { code: details.code ?? 'ERR_NOT_AUTHORIZED', status: 401, cause: details.cause });
  }
}

/** The token store failed. Nothing was given up: the grant is there again when the store is. */
export class TokenStoreError extends OAuthAppError {
  override readonly name = 'TokenStoreError';

  constructor(message: string, details: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, { code: details.code ?? 'ERR_TOKEN_STORE', status: 503, cause: details.cause });
  }
}

/**
 * A copy of an error, for one more caller: callers that waited for the same thing share no mutable object.
 * Errors of other packages are handed on as they are.
 */
export function cloneError(error: unknown): unknown {
  if (!(error instanceof OAuthAppError)) return error;
  // Each class takes its own fields as details.
  const Class = error.constructor as new (message: string, details: OAuthAppError) => OAuthAppError;
  return new Class(error.message, error);
}
