import type { NextFunction, Request, Response } from 'express';
import { ApiError, NotAuthorizedError, OAuthAppError, ServiceUnavailableError } from 'passport-oauth-app';

export function handleError(error: unknown, req: Request, res: Response, next: NextFunction): void {
  if (!(error instanceof OAuthAppError) || res.headersSent) {
    next(error);
    return;
  }
  if (error instanceof ServiceUnavailableError) res.set('Retry-After', String(error.retryAfter ?? 30));
  // A script cannot log in: only a page is sent to the login, and comes back after it.
  const isPage = req.method === 'GET' && req.accepts(['json', 'html']) === 'html';
  if (error instanceof NotAuthorizedError && isPage) {
    res.redirect(`/login?${new URLSearchParams({ returnTo: req.originalUrl })}`);
    return;
  }
  // What the API refused this user is shown to the user; anything else is for the log.
  const message = error instanceof ApiError ? error.message : 'Something went wrong. Please try again.';
  res.status(error.status < 400 ? 502 : error.status);
  // Never as HTML: the API's words may hold markup.
  if (isPage) res.type('text/plain').send(message);
  else res.json({ error: { code: error.code, message } });
}
