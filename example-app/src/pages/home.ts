import type { Request, Response } from 'express';
import { panelViews } from '../panel/panel.js';
import { type Html, html } from './html.js';
import { layout, viewerOf } from './layout.js';

/** Returns the home page: an invitation to log in, or who is logged in and what can be tried. */
export async function homePage(req: Request, res: Response): Promise<string> {
  const views = await panelViews(res);
  const viewer = viewerOf(req);
  const firstMinute =
    views?.guide &&
    html`<section class="card" aria-labelledby="minute-title">
<h2 id="minute-title">The first minute</h2>
${views.guide}
</section>`;
  if (!viewer) {
    // The session still knows the person, and the grant is gone.
    const ended = req.user
      ? html`<p class="notice" role="status" data-tone="ended">Your permission has ended. Log in to go on.</p>`
      : undefined;
    const intro = html`${ended}<h1>Log in once.<br>Your token never goes stale.</h1>
<p class="lead">This application acts on your behalf at a service with short-lived tokens. Log in, and watch how they are kept
fresh.</p>
<p class="actions"><a class="button" href="/login">Log in</a>${inFrame(req)}</p>`;
    return layout(req, res, { title: 'Welcome', intro, main: firstMinute });
  }
  const intro = html`<h1>Hello, ${viewer.name}</h1>
<p class="lead">${viewer.organization ? `Organization ${viewer.organization}` : 'A personal account'}. Requests go to
<code>${req.apiClient.baseUrl}</code></p>
<div class="actions"><a class="button" href="/projects">See my projects</a><a class="quiet" href="/glossary">Use my glossary</a><a class="quiet" href="/login">Log in as somebody else</a>${inFrame(req)}</div>`;
  return layout(req, res, { title: 'Home', intro, main: html`${firstMinute}${views?.incidents}` });
}

/** Returns the link to the page of the emulated service that shows this application in a frame. */
function inFrame(req: Request): Html | undefined {
  return req.app.locals.hasEmbedded ? html`<a class="quiet" href="/embedded">See it inside the service</a>` : undefined;
}
