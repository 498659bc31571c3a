import type { Request, Response } from 'express';
import type { GrantSummary } from 'passport-oauth-app';
import { type Html, html } from './html.js';
import type { PanelViews } from './panel/panel.js';

/** The content that differs from page to page. The intro holds the heading, and what stands above the panel on a small screen. */
export type Page = (req: Request, views: PanelViews | undefined) => Content;

interface Content {
  readonly title: string;
  readonly intro: Html;
  readonly main?: Html | undefined;
}

/** The payload of `/api/v2/projects`, as far as it is shown here. Progress is in per cent. */
export interface ProjectList {
  readonly data: readonly { readonly data: Project }[];
}

interface Project {
  readonly name: string;
  readonly description?: string;
  readonly progress?: number;
}

/** Sends a whole page: header with navigation, the content, and the panel. */
export async function send(res: Response, page: Page): Promise<void> {
  const { req } = res;
  // `undefined` if the request has failed before the panel.
  const views: PanelViews | undefined = await res.locals.panel?.();
  const { title, intro, main } = page(req, views);
  const link = (path: string, text: string) =>
    html`<a href="${path}"${req.path === path ? html` aria-current="page"` : undefined}>${text}</a>`;
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
<nav aria-label="Pages">${link('/', 'Home')}${link('/projects', 'Projects')}${req.app.locals.hasOperator ? link('/grants', 'Grants') : undefined}</nav>
${account(viewerOf(req))}
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
  res.send(source);
}

/** Returns who is logged in: known by name, and with a grant to act with. */
export function viewerOf(req: Request): Express.User | undefined {
  return req.apiClient?.authorized ? req.user : undefined;
}

function account(viewer: Express.User | undefined): Html {
  if (!viewer) return html`<div class="account">${button('/login', 'Log in', 'button small')}</div>`;
  return html`<div class="account">
<span class="who"><b>${viewer.name}</b><small>${viewer.organization ?? 'Personal account'}</small></span>
<form method="post" action="/logout"><button class="small">Log out</button></form>
</div>`;
}

/** Returns a link that looks like a button, or a quiet one. */
export function button(href: string, text: string, look = 'button'): Html {
  return html`<a class="${look}" href="${href}">${text}</a>`;
}

/** The home page: an invitation to log in, or who is logged in and what can be tried. */
export const home: Page = (req, views) => {
  const viewer = viewerOf(req);
  const inFrame = req.app.locals.hasEmbedded ? button('/embedded', 'See it inside the service', 'quiet') : undefined;
  const main = html`${views?.firstMinute}${viewer && views?.incidents}`;
  if (viewer) {
    const intro = html`<h1>Hello, ${viewer.name}</h1>
<p class="lead">${viewer.organization ? `Organization ${viewer.organization}` : 'A personal account'}. Requests go to
<code>${req.apiClient.baseUrl}</code></p>
<div class="actions">${button('/projects', 'See my projects')}${button('/glossary', 'Use my glossary', 'quiet')}${button('/login', 'Log in as somebody else', 'quiet')}${inFrame}</div>`;
    return { title: 'Home', intro, main };
  }
  // The session still knows the person, and the grant is gone.
  const ended = req.user
    ? html`<p class="notice" role="status" data-tone="ended">Your permission has ended. Log in to go on.</p>`
    : undefined;
  const intro = html`${ended}<h1>Log in once.<br>Your token never goes stale.</h1>
<p class="lead">This application acts on your behalf at a service with short-lived tokens. Log in, and watch how they are kept
fresh.</p>
<p class="actions">${button('/login', 'Log in')}${inFrame}</p>`;
  return { title: 'Welcome', intro, main };
};

/** Returns the page that lists the visitor's projects. */
export function projects(list: ProjectList['data']): Page {
  const item = ({ data: { name, description, progress } }: ProjectList['data'][number]) => html`<li class="card">
<h2>${name}</h2>${description ? html`<p class="soft">${description}</p>` : undefined}${
    typeof progress === 'number'
      ? html`<div class="progress"><progress max="100" value="${progress}" aria-label="Progress of ${name}"></progress><span>${progress}%</span></div>`
      : undefined
  }</li>`;
  return (req) => ({
    title: 'Projects',
    intro: html`<h1>Projects</h1>
<p class="lead">From <code>${req.apiClient.baseUrl}/projects</code>, on behalf of ${req.user?.name}.</p>`,
    main: list.length > 0 ? html`<ul class="projects">${list.map(item)}</ul>` : html`<p>There are none yet.</p>`,
  });
}

/** Returns the operator's page: who has granted this application access, with a button that ends it. */
export function grants(accounts: ReadonlyMap<string, readonly GrantSummary[]>): Page {
  return (req) => ({
    title: 'Grants',
    intro: html`<h1>Grants</h1>
<p class="lead">For the operator: who has given this application access. It is shown with the emulated service only.</p>`,
    main: html`<form method="post" action="/grants/job"><button class="small">Run a job as the organization</button></form>${
      accounts.size > 0
        ? html`<ul class="projects">${[...accounts].map(([one, logins]) => accountItem(one, logins, one === req.user?.id))}</ul>`
        : html`<p>Nobody is logged in.</p>`
    }`,
  });
}

/** Returns the page after a job of the organization. */
export function job(list: ProjectList['data']): Page {
  return () => ({
    title: 'Job',
    intro: html`<h1>The job has run</h1>
<p class="lead">The organization acme has installed the application. Its job has seen ${list.length} projects, and nobody had to log in for it.</p>
<div class="actions">${button('/grants', 'Back to the grants')}</div>`,
  });
}

function accountItem(account: string, grants: readonly GrantSummary[], isViewer: boolean): Html {
  const living = grants.filter(({ ended }) => !ended).length;
  const logins = living === 0 ? 'Ended: the user has to log in again' : living === 1 ? '1 login' : `${living} logins`;
  const latest = Math.max(...grants.map(({ createdAt, refreshedAt }) => refreshedAt ?? createdAt ?? 0));
  const time = new Date(latest).toISOString();
  const about = [grants[0]?.organizationDomain ?? 'Personal account', logins, grants[0]?.scope?.join(', ')];
  return html`<li class="card">
<h2>Account ${account}${isViewer ? ' (you)' : undefined}</h2>
<p class="soft">${about.filter(Boolean).join(' · ')}<br>Last token: <time datetime="${time}">${time.slice(0, 19).replace('T', ' ')} UTC</time></p>
<form method="post" action="/grants/${encodeURIComponent(account)}/end"><button class="small" aria-label="Log out everywhere: account ${account}">Log out everywhere</button></form>
</li>`;
}

/** The page that needs one scope more than the login asks for. */
export const glossary: Page = (req) => ({
  title: 'Glossary',
  intro: html`<h1>Glossary</h1>
<p class="lead">This page needed one permission more, and you have given it. The application may now use:</p>
<ul>${req.apiClient.scope.map((scope) => html`<li><code>${scope}</code></li>`)}</ul>
<div class="actions">${button('/', 'Back to the start')}</div>`,
});

/** The page after a declined login. */
export const declined: Page = (req) => {
  const viewer = viewerOf(req);
  const intro = viewer
    ? html`<h1>You declined, and nothing has changed</h1>
<p class="lead">You are still logged in as ${viewer.name}, with the permission that you gave before.</p>
<div class="actions">${button('/', 'Back to the start')}${button('/login', 'Log in as somebody else', 'quiet')}</div>`
    : html`<h1>You declined, and that is fine</h1>
<p class="lead">The service has given this application nothing. You can log in whenever you change your mind.</p>
<div class="actions">${button('/login', 'Log in')}${button('/', 'Back to the start', 'quiet')}</div>`;
  return { title: 'Login declined', intro };
};

/** The page for an address that does not exist. */
export const notFound: Page = () => ({
  title: 'Not found',
  intro: html`<p class="status">404</p>
<h1>There is nothing here</h1>
<p class="lead">The address is mistyped, or the page has moved.</p>
<div class="actions">${button('/', 'Back to the start')}</div>`,
});
