import type { ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';

/** Throws if somebody else has sent the response, such as a time-out middleware: the browser would never learn of its session. */
export function refuseSentResponse(res: ServerResponse): void {
  const error = sentResponseError(res);
  if (error) throw error;
}

/** Returns the error for a response that somebody else has sent. */
export function sentResponseError(res: ServerResponse): ConfigurationError | undefined {
  if (!res.headersSent && !res.writableEnded) return undefined;
  return new ConfigurationError(
    'The response was sent before the login ended, most likely by a time-out middleware: nobody was logged in. Give the callback route more time than the option timeout.',
    { code: 'ERR_RESPONSE_SENT' },
  );
}
