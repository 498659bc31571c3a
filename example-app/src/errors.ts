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
import { opening, send, viewerOf } from './pages.js';

/** What the user reads, and the target and the text of the button. */
type Words = readonly [title: string, text: string, way: readonly [href: string, text: string]];

const home = ['/', 'Back to the start'] as const;
const login = ['/login', 'Log in'] as const;
const again = ['/projects', 'Try again'] as const;

/** Sends an error page with the error's status. Details go to the server's log. */
export async function errorPage(error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> {
  if (res.headersSent) return next(error);
  const given: unknown = error instanceof Error && 'status' in error ? error.status : undefined;
  const status = typeof given === 'number' && given >= 400 && given < 600 ? given : 500;
  if (status >= 500) console.error(logLine(error, status));
  if (error instanceof ServiceUnavailableError || error instanceof ApiError) {
    if (error.retryAfter) res.set('Retry-After', String(Math.ceil(error.retryAfter)));
  }
  const seconds = res.get('Retry-After');
  await send(res.status(status), () => {
    const [title, text, [href, label]] = wordsFor(error, status, viewerOf(req));
    const lead = seconds ? html`${text} Wait <b>${seconds} s</b>, then try again.` : text;
    const button = html`<a class="button" href="${href}"${seconds ? html` data-wait="${seconds}"` : undefined}>${label}</a>`;
    return { title, intro: html`<p class="status">${status}</p>${opening(title, lead, button)}` };
  });
}

function wordsFor(error: unknown, status: number, viewer: Express.User | undefined): Words {
  if (error instanceof NotAuthorizedError && status === 403) {
    const text = `You did not allow ${error.scope?.join(', ')}. Everything else works as before.`;
    return ['This page needs one more permission', text, ['/glossary', 'Ask me again']];
  }
  if (error instanceof NotAuthorizedError) {
    return ['Your access has expired', 'Log in to continue.', login];
  }
  if (error instanceof TokenStoreError)
    return ['Our storage is down', 'Nothing is lost. Please try again in a moment.', home];
  if (error instanceof AuthorizationError) return ['The service rejected the login', 'Please try again.', login];
  if (error instanceof TokenError || error instanceof TokenResponseError)
    return ['The service rejects this application', 'The operator has to fix this.', home];
  const answered = error instanceof ApiError;
  if (error instanceof ServiceUnavailableError || (answered && (status === 429 || status >= 500))) {
    if (!viewer)
      return ['The service is not responding', 'You are not logged in yet. Please try again in a moment.', login];
    const title = answered ? 'The service has a problem' : 'The service is not responding';
    const text = 'You are still logged in. Please try again in a moment.';
    return [status === 429 ? 'Too many requests' : title, text, again];
  }
  if (answered) return ['The service rejected the request', `It responded with status ${status}.`, home];
  if (status !== 403) return ['Something went wrong', 'We logged the error.', home];
  const text = 'It may have expired, or already been completed. Please log in again.';
  return ['This login did not start here', text, login];
}

/** The errors of the package hold no secret; of others, only the name and the message are known to be text. */
function logLine(error: unknown, status: number): string {
  if (error instanceof OAuthAppError) return `${status} ${error.name} ${error.code}: ${error.message}`;
  return `${status} ${error instanceof Error ? error.stack : String(error)}`;
}
