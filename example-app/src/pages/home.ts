import type { Request, Response } from 'express';
import type { PanelParts } from '../panel/panel.js';
import { type Html, html } from './html.js';
import { layout, panelParts, viewerOf } from './layout.js';

/** The home page: an invitation to log in, or who is logged in and how their token is doing. */
export async function homePage(req: Request, res: Response): Promise<string> {
  const viewer = viewerOf(req);
  if (!viewer) return layout(req, res, { title: 'Welcome', main: welcome(req) });
  return layout(req, res, { title: 'Home', main: overview(req, viewer, await panelParts(res)) });
}

function welcome(req: Request): Html {
  const ended = req.user
    ? html`<p class="notice" role="status">Your permission has ended. Please log in again.</p>`
    : undefined;
  return html`<section class="hero">
${ended}
<h1>Log in once.<br>Never hold a stale token.</h1>
<p class="lead">This application acts on your behalf at a service that hands out short-lived tokens. Log in, use it, and
watch beside the page how the tokens are kept fresh.</p>
<p><a class="button" href="/login">Log in</a></p>
</section>
<ol class="steps">
<li><b>You approve</b><span>The service asks you what this application may do. Declining is fine, too.</span></li>
<li><b>A code becomes tokens</b><span>They stay on the server. The browser gets a session cookie and nothing else.</span></li>
<li><b>Every request is ready</b><span>Its API client refreshes the token when it is due: once, however many ask.</span></li>
</ol>`;
}

function overview(req: Request, viewer: Express.User, panel: PanelParts | undefined): Html {
  return html`<h1>Hello, ${viewer.name}</h1>
<dl class="facts">
<div><dt>Logged in as</dt><dd>${viewer.name}</dd></div>
<div><dt>Organization</dt><dd>${viewer.organization ?? 'None: a personal account'}</dd></div>
<div class="wide"><dt>Requests go to</dt><dd><code>${req.apiClient.baseUrl}</code></dd></div>
</dl>
${panel?.meter}
<div class="actions">
<a class="button" href="/projects">See my projects</a>
${panel?.canExpire ? html`<form method="post" action="/panel/expire"><button>Expire my token now</button></form>` : undefined}
<a class="quiet" href="/login">Log in as somebody else</a>
</div>`;
}
