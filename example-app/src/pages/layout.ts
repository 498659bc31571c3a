import type { Request, Response } from 'express';
import type { PanelParts } from '../panel/panel.js';
import { type Html, html } from './html.js';

/** What differs from page to page. */
export interface PageContent {
  readonly title: string;
  readonly main: Html;
}

/** A whole page: header with navigation, the content, and the panel beside it. */
export async function layout(req: Request, res: Response, { title, main }: PageContent): Promise<string> {
  const panel = await panelParts(res);
  const { source } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Example of passport-oauth-app</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
<script src="/panel.js" type="module"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header>
<div class="bar">
<a class="brand" href="/"><img src="/icon.svg" alt="" width="28" height="28"><span>passport-oauth-app <small>example</small></span></a>
<nav aria-label="Pages">${link(req, '/', 'Home')}${link(req, '/projects', 'Projects')}</nav>
${account(req)}
</div>
</header>
<div class="columns">
<main id="main" tabindex="-1">
${main}
</main>
${panel?.aside}
</div>
</body>
</html>
`;
  return source;
}

/** Who is logged in: known by name, and with a grant to act with. */
export function viewerOf(req: Request): Express.User | undefined {
  return req.apiClient?.authorized ? req.user : undefined;
}

/** What there is of the panel; nothing if the page is an error that came before it. */
export async function panelParts(res: Response): Promise<PanelParts | undefined> {
  return res.locals.panel?.();
}

function link(req: Request, path: string, text: string): Html {
  return req.path === path
    ? html`<a href="${path}" aria-current="page">${text}</a>`
    : html`<a href="${path}">${text}</a>`;
}

function account(req: Request): Html {
  const viewer = viewerOf(req);
  if (!viewer) return html`<div class="account"><a class="button small" href="/login">Log in</a></div>`;
  return html`<div class="account">
<span class="who"><b>${viewer.name}</b><small>${viewer.organization ?? 'Personal account'}</small></span>
<form method="post" action="/logout"><button class="small">Log out</button></form>
</div>`;
}
