import type { ServerResponse } from 'node:http';

/** What Passport lets a strategy do with a request: exactly one of them. */
export interface PassportActions {
  /** Returns what a callback given to `passport.authenticate` returns: a promise, if that is an async function. */
  success(user: unknown, info?: unknown): unknown;
  fail(info?: unknown, status?: number): unknown;
  redirect(url: string, status?: number): void;
  /** Returns like `success`. */
  error(error: unknown): unknown;
}

/** Passes an error on to Passport, and so to the application's error handler. */
export async function passOn(error: unknown, actions: PassportActions, res: ServerResponse | undefined): Promise<void> {
  // Routers take a false value for success, and these two texts as commands to skip handlers.
  const isError = Boolean(error) && error !== 'route' && error !== 'router';
  try {
    await actions.error(isError ? error : new Error('verify or userProfile failed without a reason'));
  } catch (thrown) {
    // The application's own callback threw, and no error handler follows it.
    process.emitWarning(thrown instanceof Error ? thrown : 'A callback given to passport.authenticate threw');
    if (!res || res.writableEnded) return;
    if (!res.headersSent) res.statusCode = 500;
    res.end();
  }
}
