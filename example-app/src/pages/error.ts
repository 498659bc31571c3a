import type { NextFunction, Request, Response } from 'express';
import {
  ApiError,
  AuthorizationError,
  NotAuthorizedError,
  OAuthAppError,
  ServiceUnavailableError,
  TokenError,
  TokenResponseError,
  TokenStoreError,
} from 'passport-oauth-app';
import { html } from './html.js';
import { layout, viewerOf } from './layout.js';

interface Words {
  readonly title: string;
  readonly text: string;
  /** The target and the text of the button. */
  readonly way: readonly [href: string, text: string];
}

const home = ['/', 'Back to the start'] as const;
const login = ['/login', 'Log in'] as const;
const again = ['/projects', 'Try again'] as const;

/** Express' error handler: a page in plain words, with the error's status. Details go to the server's log. */
export async function errorPage(error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> {
  if (res.headersSent) return next(error);
  const status = statusOf(error);
  if (status >= 500) console.error(logLine(error, status));
  if (error instanceof ServiceUnavailableError || error instanceof ApiError) {
    if (error.retryAfter) res.set('Retry-After', String(Math.ceil(error.retryAfter)));
  }
  const { title, text, way } = wordsFor(error, status, viewerOf(req));
  const seconds = res.get('Retry-After');
  const wait = seconds ? html`<p>It can be tried again in <b>${seconds} s</b>.</p>` : undefined;
  const intro = html`<p class="status">${status}</p>
<h1>${title}</h1>
<p class="lead">${text}</p>
${wait}
<div class="actions"><a class="button" href="${way[0]}"${seconds ? html` data-wait="${seconds}"` : undefined}>${way[1]}</a></div>`;
  res.status(status).send(await layout(req, res, { title, intro }));
}

function wordsFor(error: unknown, status: number, viewer: Express.User | undefined): Words {
  if (error instanceof NotAuthorizedError && error.status === 403) {
    const text = `You have not allowed ${error.scope?.join(', ')}. All else works as before.`;
    return { title: 'This page needs one permission more', text, way: ['/glossary', 'Ask me again'] };
  }
  if (error instanceof NotAuthorizedError) {
    return { title: 'Your permission has ended', text: 'Log in to go on.', way: login };
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
  if (error instanceof TokenError || error instanceof TokenResponseError) {
    return { title: 'The service refuses this application', text: 'The operator has to look after it.', way: home };
  }
  if (error instanceof ServiceUnavailableError || (error instanceof ApiError && isTemporary(error.status))) {
    if (!viewer) {
      const text = 'You are not logged in yet. Please try again in a moment.';
      return { title: 'The service does not answer', text, way: login };
    }
    const text = 'You are still logged in. Please try again in a moment.';
    if (error.status === 429) return { title: 'The service asks for patience', text, way: again };
    const answered = error instanceof ApiError;
    return { title: answered ? 'The service has a problem' : 'The service does not answer', text, way: again };
  }
  if (error instanceof ApiError) {
    return { title: 'The service refused the request', text: `It answered with status ${error.status}.`, way: home };
  }
  if (status === 403) {
    const text = 'It may be too old, or was finished already. Nothing has happened. Please log in again.';
    return { title: 'This login was not begun here', text, way: login };
  }
  return { title: 'Something went wrong', text: 'It was logged, and is not your fault.', way: home };
}

function isTemporary(status: number): boolean {
  return status === 429 || status >= 500;
}

function statusOf(error: unknown): number {
  const status: unknown = error instanceof Error && 'status' in error ? error.status : undefined;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : 500;
}

/** The errors of the package hold no secret; of others, only the name and the message are known to be text. */
function logLine(error: unknown, status: number): string {
  if (error instanceof OAuthAppError) return `${status} ${error.name} ${error.code}: ${error.message}`;
  return `${status} ${error instanceof Error ? error.stack : String(error)}`;
}
