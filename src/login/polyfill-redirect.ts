import type { ServerResponse } from 'node:http';

/**
 * Gives a response of Connect the `redirect(url)` that Express' responses have: Passport calls it for `successRedirect`,
 * `successReturnToOrRedirect` and `failureRedirect`.
 */
export function polyfillRedirect(res: ServerResponse): void {
  if (typeof Reflect.get(res, 'redirect') === 'function') return;
  const redirect = (url: string): void => {
    res.statusCode = 302;
    res.setHeader('Location', url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent));
    res.setHeader('Content-Length', '0');
    res.end();
  };
  Object.defineProperty(res, 'redirect', { value: redirect, configurable: true, writable: true });
}
