import type { NextFunction, Request, Response } from 'express';
import {
  ApiError,
  AuthorizationError,
  NotAuthorizedError,
  OAuthAppError,
  ServiceUnavailableError,
  TokenStoreError,
} from 'passport-oauth-app';
import { html } from './html.js';
import { layout } from './layout.js';

interface Words {
  readonly title: string;
  readonly text: string;
  /** Where a button leads, and what it says. */
  readonly way: readonly [href: string, text: string];
}

const home = ['/', 'Back to the start'] as const;
const login = ['/login', 'Log in'] as const;

/** Express' error handler: a page in plain words, with the error's status. Details go to the server's log. */
export async function errorPage(error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> {
  if (res.headersSent) {
    next(error);
    return;
  }
  const status = statusOf(error);
  if (status >= 500) console.error(lineOf(error, status));
  if (error instanceof ServiceUnavailableError && error.retryAfter !== undefined) {
    res.set('Retry-After', String(Math.ceil(error.retryAfter)));
  }
  const { title, text, way } = wordsFor(error, status);
  const main = html`<section class="message">
<p class="status">${status}</p>
<h1>${title}</h1>
<p class="lead">${text}</p>
<div class="actions"><a class="button" href="${way[0]}">${way[1]}</a></div>
${error instanceof OAuthAppError ? html`<p class="soft">Code <code>${error.code}</code></p>` : undefined}
</section>`;
  res.status(status).send(await layout(req, res, { title, main }));
}

function wordsFor(error: unknown, status: number): Words {
  if (error instanceof NotAuthorizedError) {
    return { title: 'Please log in', text: 'There is no permission to act with (any more).', way: login };
  }
  if (error instanceof ServiceUnavailableError) {
    return {
      title: 'The service does not answer',
      text: 'You are still logged in. Please try again in a moment.',
      way: ['/projects', 'Try again'],
    };
  }
  if (error instanceof TokenStoreError) {
    return {
      title: 'Our own storage does not answer',
      text: 'Nothing is lost. Please try again in a moment.',
      way: home,
    };
  }
  if (error instanceof AuthorizationError) {
    return { title: 'The service refused the login', text: 'It gave no permission this time.', way: login };
  }
  if (error instanceof ApiError) {
    return { title: 'The service refused the request', text: `It answered with status ${error.status}.`, way: home };
  }
  if (status === 403) {
    return {
      title: 'This login was not begun here',
      text: 'It may be too old, or was finished already. Nothing has happened. Please log in again.',
      way: login,
    };
  }
  return { title: 'Something went wrong', text: 'It was logged, and is not your fault.', way: home };
}

function statusOf(error: unknown): number {
  const status: unknown = error instanceof Error && 'status' in error ? error.status : undefined;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : 500;
}

/** One line for the log. The errors of the package hold no secret; of others, only the name and the message are known to be text. */
function lineOf(error: unknown, status: number): string {
  if (error instanceof OAuthAppError) return `${status} ${error.name} ${error.code}: ${error.message}`;
  return `${status} ${error instanceof Error ? error.stack : String(error)}`;
}
