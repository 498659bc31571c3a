import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'cookie';
import { forgetReturnTo, RETURN_COOKIE } from './return-cookie.js';
import { safeReturnTo } from './return-to.js';

/** The path that the browser brings along, taken from it so that a later login does not go there as well. */
export function takeReturnTo(req: IncomingMessage, res: ServerResponse): string | undefined {
  const value = parse(req.headers.cookie ?? '')[RETURN_COOKIE];
  if (value === undefined) return undefined;
  forgetReturnTo(req, res);
  return safeReturnTo(value);
}
