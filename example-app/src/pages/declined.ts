import type { Request, Response } from 'express';
import { html } from './html.js';
import { layout } from './layout.js';

/** The page after a declined login. */
export function declinedPage(req: Request, res: Response): Promise<string> {
  const main = html`<section class="message">
<h1>You declined, and that is fine</h1>
<p class="lead">The service has given this application nothing. You can log in whenever you change your mind.</p>
<div class="actions"><a class="button" href="/login">Log in</a><a class="quiet" href="/">Back to the start</a></div>
</section>`;
  return layout(req, res, { title: 'Login declined', main });
}
