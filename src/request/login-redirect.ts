import type { IncomingMessage, ServerResponse } from 'node:http';
import { originalUrl } from './incoming-request.js';
import { rememberReturnTo } from './return-cookie.js';

/** Sends a browser that asks for a page to the login route, and has it bring the page's path along. */
export function sendToLogin(req: IncomingMessage, res: ServerResponse, login: string): void {
  rememberReturnTo(req, res, originalUrl(req));
  res.statusCode = 302;
  res.setHeader('Location', login);
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Content-Length', '0');
  res.end();
}
