import { ApiError, type ApiErrorDetails } from './api-error.js';
import { serviceMessage } from './service-message.js';

/** An answer that is no success. */
export interface RefusedAnswer extends Omit<ApiErrorDetails, 'code' | 'cause'> {
  /** Kept out of the message, wherever the service repeats it. */
  readonly accessToken: string;
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'The access token is refused: the user has to authorize the application again.',
  403: 'The scopes of the authorization, or the rights of the user, do not reach so far.',
  404: 'There is no such thing, or not for this user and organization.',
  429: 'Too many requests: the option `concurrency` keeps each grant within the limit of the service.',
};

/** The error for an answer that is no success. */
export function refusedAnswer({ accessToken, ...details }: RefusedAnswer): ApiError {
  const { status, method, path } = details;
  const said = serviceMessage(details.data, accessToken);
  const parts = [
    `${method} ${shown(path)}: status ${status}.`,
    said === undefined ? '' : `${said}.`,
    HINTS[status] ?? '',
  ];
  return new ApiError(parts.filter((part) => part !== '').join(' '), details);
}

/** The error for a success that cannot be used. */
export function unusableAnswer(reason: string, details: Omit<ApiErrorDetails, 'status' | 'code'>): ApiError {
  const message = `${details.method} ${shown(details.path)}: ${reason}`;
  return new ApiError(message, { ...details, status: 502, code: 'ERR_API_RESPONSE' });
}

/** A path that fits in a message. */
export function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
