import { OAuthAppError } from '../errors.js';
import { apiChannel } from '../events.js';
import type { CallRequest } from './call-options.js';

/** One try of a call, for its event. */
export interface Try {
  readonly strategy: string;
  readonly grantId: string | undefined;
  readonly request: CallRequest;
  /** Requests of the call so far, this one included; 0 if the call failed before any. */
  readonly attempts: number;
  readonly durationMs: number;
  /** Of the response, if there is one. */
  readonly status?: number | undefined;
  /** What the caller would see of the fault, if there is one. */
  readonly error?: unknown;
}

/** Publishes the event of a try. */
export function publishTry({ strategy, grantId, request, attempts, durationMs, status, error }: Try): void {
  const { method, path } = request;
  const isRefused = status !== undefined && status >= 300 && status !== 304;
  const reason = isRefused ? 'ERR_API' : error === undefined ? undefined : reasonOf(error);
  apiChannel.publish({
    strategy,
    grantId,
    method,
    path,
    ...(status === undefined ? {} : { status }),
    ...(reason === undefined ? {} : { reason }),
    attempts,
    durationMs,
  });
}

function reasonOf(error: unknown): string {
  if (error instanceof OAuthAppError) return error.code;
  return error instanceof Error && error.name === 'AbortError' ? 'ERR_ABORTED' : 'ERR_UNKNOWN';
}
