import type { ServerResponse } from 'node:http';

/** Returns a URL as the header `Location` can hold it. */
export function locationOf(url: string): string {
  return url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/** Redirects with 302. Connect's responses have no `redirect`. */
export function redirect(res: ServerResponse, url: string): void {
  res.statusCode = 302;
  res.setHeader('Location', locationOf(url));
  res.setHeader('Content-Length', '0');
  res.end();
}
