import type { Request, Response } from 'express';
import type { GrantSummary } from 'passport-oauth-app';
import { type Html, html } from './html.js';
import type { PanelViews } from './panel/panel.js';

/** The content that differs from page to page. */
export type Page = (req: Request, views: PanelViews | undefined) => Content;

interface Content {
  readonly title: string;
  /** The heading, and what stands above the panel on a small screen. */
  readonly intro: Html;
  readonly main?: Html | undefined;
}

/** The payload of `/api/v2/projects`, as far as it is shown here. Progress is in per cent. */
export interface ProjectList {
  readonly data: readonly {
    readonly data: { readonly name: string; readonly description?: string; readonly progress?: number };
  }[];
}

/** Sends a whole page: header with navigation, the content, and the panel. */
export async function send(res: Response, page: Page): Promise<void> {
  const { req } = res;
  // `undefined` if the request has failed before the panel.
  const views: PanelViews | undefined = await res.locals.panel?.();
  const { title, intro, main } = page(req, views);
  const tab = (path: string, text: string) =>
    html`<a href="${path}"${req.path === path ? html` aria-current="page"` : undefined}>${text}</a>`;
  const { source } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${views?.verdictText ? `${views.verdictText} · ` : ''}${title} · Example of passport-oauth-app</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
<script src="/panel.js" type="module"></script>
</head>
<body>
<header class="row">
<a class="button skip" href="#main">Skip to content</a>
<img src="/icon.svg" alt="" width="28" height="28">
<a href="/"><b>passport-oauth-app</b> <small>example</small></a>
<nav aria-label="Pages">${tab('/', 'Home')}${tab('/projects', 'Projects')}${req.app.locals.hasOperator ? tab('/grants', 'Grants') : undefined}</nav>
<div class="row">${account(viewerOf(req))}</div>
</header>
<main id="main" tabindex="-1">
<div>${intro}</div>
<div class="beside" id="panel">${views?.verdict}${views?.panel}</div>
<div>${main}</div>
</main>
</body>
</html>
`;
  res.send(source);
}

/** Returns who is logged in: known by name, and with a grant to act with. */
export function viewerOf(req: Request): Express.User | undefined {
  return req.apiClient?.authorized ? req.user : undefined;
}

function account(viewer: Express.User | undefined): Html {
  if (!viewer) return button('/login', 'Log in');
  return html`<p class="who"><b>${viewer.name}</b><br><small>${viewer.organization ?? 'Personal account'}</small></p>
<form method="post" action="/logout"><button class="small">Log out</button></form>`;
}

const link = (href: string, text: string) => html`<a href="${href}">${text}</a>`;
/** A link that looks like a button. */
const button = (href: string, text: string) => html`<a class="button" href="${href}">${text}</a>`;

/** Returns the beginning of a page: its heading, one sentence, and where to go from here. */
export function opening(title: string | Html, lead: string | Html, ...ways: readonly (Html | undefined)[]): Html {
  return html`<h1>${title}</h1>
<p>${lead}</p>${ways.length > 0 ? html`<div class="actions">${ways}</div>` : undefined}`;
}

const start = button('/', 'Back to the start');

/** The home page: an invitation to log in, or who is logged in and what can be tried. */
export const home: Page = (req, views) => {
  const viewer = viewerOf(req);
  const inFrame = req.app.locals.hasEmbedded ? link('/embedded', 'See it inside the service') : undefined;
  const main = html`${views?.firstMinute}${viewer && views?.incidents}`;
  if (viewer) {
    const whose = viewer.organization ? `Organization ${viewer.organization}` : 'A personal account';
    const lead = html`${whose}. Requests go to <code>${req.apiClient.baseUrl}</code>`;
    const ways = [link('/glossary', 'Use my glossary'), link('/login', 'Log in as another user')];
    const intro = opening(`Hello, ${viewer.name}`, lead, button('/projects', 'See my projects'), ...ways, inFrame);
    return { title: 'Home', intro, main };
  }
  // The session still has the user, but the grant is gone.
  const ended = req.user
    ? html`<p class="notice" role="status" data-tone="ended">Your access has expired. Log in to continue.</p>`
    : undefined;
  const title = html`Log in once.<br>Your token stays fresh.`;
  const lead =
    'This application calls a service with short-lived tokens on your behalf. Log in, and watch it keep them fresh.';
  return { title: 'Welcome', intro: html`${ended}${opening(title, lead, button('/login', 'Log in'), inFrame)}`, main };
};

/** Returns the page that lists the visitor's projects. */
export function projects(list: ProjectList['data']): Page {
  const item = ({ data: { name, description, progress } }: ProjectList['data'][number]) => html`<li class="card">
<h2>${name}</h2>${description ? html`<p class="soft">${description}</p>` : undefined}${
    typeof progress === 'number'
      ? html`<p>${progress}% <progress max="100" value="${progress}" aria-label="Progress of ${name}"></progress></p>`
      : undefined
  }</li>`;
  return (req) => ({
    title: 'Projects',
    intro: opening(
      'Projects',
      html`From <code>${req.apiClient.baseUrl}/projects</code>, on behalf of ${req.user?.name}.`,
    ),
    main: list.length > 0 ? html`<ul class="projects">${list.map(item)}</ul>` : html`<p>You have no projects yet.</p>`,
  });
}

/** Returns the operator's page: who has granted this application access, with a button that ends it. */
export function grants(
  accounts: ReadonlyMap<string, readonly GrantSummary[]>,
  names: ReadonlyMap<string, string>,
): Page {
  const lead = 'For the operator: the users who gave this application access. Shown with the emulated service only.';
  return (req) => ({
    title: 'Grants',
    intro: opening('Grants', lead),
    main: html`<form method="post" action="/grants/job"><button class="small">Run a job as the organization</button></form>
${accounts.size > 0 ? html`<ul class="projects">${[...accounts].map((one) => accountItem(one, names.get(one[0]), req.user?.id))}</ul>` : html`<p>No user is logged in.</p>`}`,
  });
}

function accountItem(
  [account, grants]: readonly [string, readonly GrantSummary[]],
  name = `Account ${account}`,
  viewer?: string,
): Html {
  const living = grants.filter(({ ended }) => !ended).length;
  const logins = living === 0 ? 'Expired: the user has to log in again' : living === 1 ? '1 login' : `${living} logins`;
  const latest = Math.max(...grants.map(({ createdAt, refreshedAt }) => refreshedAt ?? createdAt ?? 0));
  const time = new Date(latest).toISOString();
  const about = [
    `Account ${account}`,
    grants[0]?.organizationDomain ?? 'Personal account',
    logins,
    grants[0]?.scope?.join(', '),
  ];
  return html`<li class="card">
<h2>${name}${account === viewer ? ' (you)' : undefined}</h2>
<p class="soft">${about.filter(Boolean).join(' · ')}<br>Last token: <time datetime="${time}">${time.slice(0, 19).replace('T', ' ')} UTC</time></p>
<form method="post" action="/grants/${encodeURIComponent(account)}/end"><button class="small" aria-label="Log out everywhere: ${name}">Log out everywhere</button></form>
</li>`;
}

/** Returns the page after a job of the organization. */
export function job({ length }: ProjectList['data']): Page {
  const lead = `The organization acme installed the application. Its job found ${length} projects, without a user logging in.`;
  return () => ({ title: 'Job', intro: opening('The job is done', lead, button('/grants', 'Back to the grants')) });
}

/** The page that needs one more scope than the login requests. */
export const glossary: Page = (req) => {
  const lead = 'This page needed one more permission, and you granted it. The application may now use:';
  const scopes = html`<ul>${req.apiClient.scope.map((scope) => html`<li><code>${scope}</code></li>`)}</ul>`;
  return { title: 'Glossary', intro: html`${opening('Glossary', lead)}${scopes}<div class="actions">${start}</div>` };
};

/** The page after a declined login. */
export const declined: Page = (req) => {
  const viewer = viewerOf(req);
  const [title, lead] = viewer
    ? ['nothing changed', `You are still logged in as ${viewer.name}, with the permissions you gave before.`]
    : ['that is fine', 'The service gave this application no access. You can log in whenever you change your mind.'];
  const ways = viewer
    ? [start, link('/login', 'Log in as another user')]
    : [button('/login', 'Log in'), link('/', 'Back to the start')];
  return { title: 'Login declined', intro: opening(`You declined, and ${title}`, lead, ...ways) };
};

/** The page for an address that does not exist. */
export const notFound: Page = () => ({
  title: 'Not found',
  intro: html`<p class="status">404</p>${opening('Page not found', 'Check the address, or start over.', start)}`,
});
