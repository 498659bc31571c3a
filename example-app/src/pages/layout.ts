import type { Request, Response } from 'express';
import { type PanelViews, panelViews } from '../panel/panel.js';
import { type Html, html } from './html.js';

/** The content that differs from page to page. */
export interface PageContent {
  readonly title: string;
  /** The heading, and what belongs above the panel on a small screen. */
  readonly intro: Html;
  readonly main?: Html | undefined;
}

/** Returns a whole page: header with navigation, the content, and the panel. */
export async function layout(req: Request, res: Response, { title, intro, main }: PageContent): Promise<string> {
  const views: PanelViews | undefined = await panelViews(res);
  const { source } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Example of passport-oauth-app</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/base.css">
<link rel="stylesheet" href="/pages.css">
<link rel="stylesheet" href="/panel.css">
<link rel="stylesheet" href="/print.css" media="print">
<script src="/panel.js" type="module"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header>
<div class="bar">
<a class="brand" href="/"><img src="/icon.svg" alt="" width="28" height="28"><span>passport-oauth-app <small>example</small></span></a>
<nav aria-label="Pages">${link(req, '/', 'Home')}${link(req, '/projects', 'Projects')}${
    req.app.get('has operator') ? link(req, '/grants', 'Grants') : undefined
  }</nav>
${account(req)}
</div>
</header>
<main id="main" tabindex="-1">
<div class="intro">${intro}</div>
<div class="beside" id="panel">${views?.verdict}${views?.panel}</div>
<div class="content">${main}</div>
</main>
</body>
</html>
`;
  return source;
}

/** Returns who is logged in: known by name, and with a grant to act with. */
export function viewerOf(req: Request): Express.User | undefined {
  return req.apiClient?.authorized ? req.user : undefined;
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
