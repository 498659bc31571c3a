import type { Request, Response } from 'express';
import { html } from './html.js';
import { layout, viewerOf } from './layout.js';

/** Returns the page after a declined login. */
export function declinedPage(req: Request, res: Response): Promise<string> {
  const viewer = viewerOf(req);
  const intro = viewer
    ? html`<h1>You declined, and nothing has changed</h1>
<p class="lead">You are still logged in as ${viewer.name}, with the permission that you gave before.</p>
<div class="actions"><a class="button" href="/">Back to the start</a><a class="quiet" href="/login">Log in as somebody else</a></div>`
    : html`<h1>You declined, and that is fine</h1>
<p class="lead">The service has given this application nothing. You can log in whenever you change your mind.</p>
<div class="actions"><a class="button" href="/login">Log in</a><a class="quiet" href="/">Back to the start</a></div>`;
  return layout(req, res, { title: 'Login declined', intro });
}
