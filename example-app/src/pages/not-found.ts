import type { Request, Response } from 'express';
import { html } from './html.js';
import { layout } from './layout.js';

/** Returns the page for an address that does not exist. */
export function notFoundPage(req: Request, res: Response): Promise<string> {
  const intro = html`<p class="status">404</p>
<h1>There is nothing here</h1>
<p class="lead">The address is mistyped, or the page has moved.</p>
<div class="actions"><a class="button" href="/">Back to the start</a></div>`;
  return layout(req, res, { title: 'Not found', intro });
}
