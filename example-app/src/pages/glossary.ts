import type { Request, Response } from 'express';
import { html } from './html.js';
import { layout } from './layout.js';

/** Returns the page that needs one scope more than the login asks for. */
export function glossaryPage(req: Request, res: Response): Promise<string> {
  const intro = html`<h1>Glossary</h1>
<p class="lead">This page needed one permission more, and you have given it. The application may now use:</p>
<ul>${req.apiClient.scope.map((scope) => html`<li><code>${scope}</code></li>`)}</ul>
<div class="actions"><a class="button" href="/">Back to the start</a></div>`;
  return layout(req, res, { title: 'Glossary', intro });
}
