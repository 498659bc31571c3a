import { createHash } from 'node:crypto';
import type { Application, EmulatorUser } from './directory.js';
import type { Reply } from './messages.js';
import { css } from './page-assets.js';

/** A piece of HTML in which all outside text is escaped. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** Template tag that escapes its values unless they are `Html`. A list is joined. */
export function html(strings: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  let source = strings[0] ?? '';
  for (const [index, value] of values.entries()) {
    if (typeof value === 'string') source += value.replace(/[&<>"']/g, (character) => entities[character] ?? '');
    else source += value instanceof Html ? value.source : value.map((part) => part.source).join('');
    source += strings[index + 1] ?? '';
  }
  return new Html(source);
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Style, script and body of a page. */
export interface PageContent {
  readonly title: string;
  readonly css: string;
  /** Inline script, which may connect to the service itself. Default: the page has no script. */
  readonly script?: string;
  /** True if the page has a frame, which a login may navigate to any page. Default false. */
  readonly hasFrame?: boolean;
  readonly body: Html;
}

/** Returns a complete page of the service, with headers that forbid framing, caching and referrers. */
export function document(status: number, { title, css, script, hasFrame, body }: PageContent): Reply {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  // No form-action: Chromium applies it to every redirect that follows the form, which would block the way back to the application and
  // the redirects of the application itself.
  const policy = [
    "default-src 'none'",
    `style-src ${hash(css)}`,
    ...(script === undefined ? [] : [`script-src ${hash(script)}`, "connect-src 'self'"]),
    ...(hasFrame ? ['frame-src http: https:'] : []),
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  const { source } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(css)}</style>
</head>
<body>
${body}
${script === undefined ? html`` : new Html(`<script>${script}</script>`)}
</body>
</html>
`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': policy.join('; '),
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // With no-referrer, a form without script is sent with the origin null, and so would look like one of a foreign page.
    'referrer-policy': script === undefined ? 'no-referrer' : 'same-origin',
  };
  return { status, headers, body: source };
}

/** Returns a page with one card, for the consent page and its errors. */
export function page(status: number, title: string, main: Html): Reply {
  const body = html`<main>
${main}
</main>
<footer>Emulated service with sample data</footer>`;
  return document(status, { title, css, body });
}

/** The request that the user is asked to approve. */
export interface ConsentRequest {
  readonly application: { readonly name: string };
  readonly redirectUri: string;
  /** Path that the form posts to: that of the page. */
  readonly action: string;
  readonly scopes: readonly string[];
  /** The parameters of the authorization request, which the form sends back. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Descriptions of the two scopes that service.md shows. It does not say what they allow. */
const shownScopes: Readonly<Record<string, string>> = {
  project: 'See and change your projects',
  tm: 'See and change your translation memories',
};

// A longer list would not help a person. The users beyond it can still approve, by `service.approve()` or a form field.
const maxUsersShown = 100;

/**
 * Returns the page that asks the user to approve or decline.
 *
 * Its form posts to the same address: the parameters of the request as hidden inputs, `user` (the id, as radio buttons) and
 * `decision` (`approve` or `decline`, as submit buttons).
 *
 * @param scopes - Descriptions of the scopes.
 * @param selected - Id of the user who is preselected. Default: the first one.
 * @see service.md section 4.1: "The server asks the user to approve the application's access based on the requested scopes"
 */
export function consentPage(
  request: ConsentRequest,
  users: Iterable<EmulatorUser>,
  scopes: Readonly<Record<string, string>> = shownScopes,
  selected?: string,
): Reply {
  const shown = [...users].slice(0, maxUsersShown);
  const { name } = request.application;
  const { host, protocol } = new URL(request.redirectUri);
  return page(
    200,
    `Allow ${name} to use your account?`,
    html`<h1>Allow ${name} to use your account?</h1>
<p class="soft">Either way, you return to ${host === '' ? `the application (${protocol})` : host}.</p>
<form method="post" action="${request.action}">
${Object.entries(request.parameters).map(hiddenInput)}
<fieldset>
<legend>Log in as</legend>
<div class="users">
${shown.map((user) => userChoice(user, user.id === (selected ?? shown[0]?.id)))}
</div>
</fieldset>
${requestedScopes(request, scopes)}<div class="choice">
<button type="submit" class="approve" name="decision" value="approve">Approve</button>
<button type="submit" name="decision" value="decline">Decline</button>
</div>
<p class="soft">Approve only applications that you trust. This one can act for you until you revoke the permission.</p>
</form>`,
  );
}

/** Returns the page for a request whose error cannot be sent to a redirect URL. */
export function errorPage(status: number, error: string, description: string): Reply {
  return page(
    status,
    'Invalid request',
    html`<h1>Invalid request</h1>
<p>${description}</p>
<p class="soft">You cannot be sent back to the application. Start again there. <code>${error}</code></p>`,
  );
}

/**
 * Returns the page for a redirect URL that is not registered.
 *
 * @param url - The redirect URL, if it can be registered.
 * @param origin - Address of the control.
 */
export function unregisteredPage(
  description: string,
  { name, clientID, redirectUrls }: Application,
  url: string | undefined,
  origin: string,
): Reply {
  const body = JSON.stringify({ clientID, redirectUrls: [url] }).replaceAll("'", "'\\''");
  const title = 'Unregistered redirect URL';
  return page(
    400,
    title,
    html`<h1>${title}</h1>
<p>${description} ${redirectUrls.length === 1 ? 'Only this one is' : 'Only these are'}: ${redirectUrls.join(', ')}.</p>
${
  url === undefined
    ? html``
    : html`<p class="soft">To let ${name} use <code>${url}</code>, run this and start the login again:</p>
<pre>curl ${origin}/_emulator/applications -d '${body}'</pre>
<p class="soft">Or start the emulator with <code>--redirect-url ${url}</code>.</p>`
}
<p class="soft"><code>invalid_request</code></p>`,
  );
}

function hiddenInput([name, value]: readonly [string, string]): Html {
  return html`<input type="hidden" name="${name}" value="${value}">
`;
}

function userChoice({ id, name, domain }: EmulatorUser, isSelected: boolean): Html {
  const checked = html`${isSelected ? ' checked' : ''}`;
  return html`<label class="user"><input type="radio" name="user" value="${id}"${checked}>
<span><b>${name}</b><span class="soft">${domain === undefined ? 'Personal account' : `Organization ${domain}`}</span></span></label>
`;
}

function requestedScopes(
  { application: { name }, scopes: requested }: ConsentRequest,
  scopes: Readonly<Record<string, string>>,
): Html {
  if (requested.length === 0) return html``;
  const items = requested.map((scope) => {
    const description = Object.hasOwn(scopes, scope) ? scopes[scope] : undefined;
    return html`<li><label><input type="checkbox" name="granted" value="${scope}" checked> ${description ?? 'Use'} <code>${scope}</code></label></li>
`;
  });
  return html`<h2 id="asks">${name} asks to</h2>
<ul aria-labelledby="asks">
${items}
</ul>
<input type="checkbox" name="choice" value="scopes" checked hidden>
`;
}
