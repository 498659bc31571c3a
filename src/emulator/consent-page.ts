import type { AuthorizationRequest, Scopes } from './authorization-request.js';
import { type Html, html, page } from './page.js';
import type { Reply } from './reply.js';
import type { EmulatorUser, Users } from './users.js';

/** The two scopes that service.md shows, in words of our own: it does not say what they open. */
const shownScopes: Scopes = {
  project: 'See and change your projects',
  tm: 'See and change your translation memories',
};

// A picker is no directory. All other users can still approve, by `service.approve()` or by a form field of their own.
const maxUsersShown = 100;

/**
 * The page that asks the user to approve or decline.
 *
 * Its form posts back to the same address: the parameters of the request as hidden inputs, `user` (the id, as radio buttons) and
 * `decision` (`approve` or `decline`, as submit buttons).
 *
 * @see service.md section 4.1: "The server asks the user to approve the application's access based on the requested scopes"
 */
export function consentPage(request: AuthorizationRequest, users: Users, scopes: Scopes = shownScopes): Reply {
  const { name } = request.application;
  return page(
    200,
    `Allow ${name} to use your account?`,
    html`<h1>Allow ${name} to use your account?</h1>
<p class="soft">You will go back to ${placeOf(request.redirectUri)}, whatever you choose.</p>
<form method="post" action="/oauth/authorize">
${Object.entries(request.parameters).map(hidden)}
<fieldset>
<legend>Log in as</legend>
<div class="users">
${[...users.all()].slice(0, maxUsersShown).map(userChoice)}
</div>
</fieldset>
<h2 id="asks">${name} asks to</h2>
<ul aria-labelledby="asks">
${request.scopes.map((scope) => scopeItem(scope, scopes))}
</ul>
<div class="choice">
<button type="submit" class="approve" name="decision" value="approve">Approve</button>
<button type="submit" name="decision" value="decline">Decline</button>
</div>
<p class="soft">Approve only what you trust. It can act for you until you take the permission back.</p>
</form>`,
  );
}

/** The page that a request gets which can be sent nowhere. */
export function errorPage(status: number, error: string, description: string): Reply {
  return page(
    status,
    'This request cannot be answered',
    html`<h1>This request cannot be answered</h1>
<p>${description}</p>
<p class="soft">So you cannot be sent back to the application. Start again from there. <code>${error}</code></p>`,
  );
}

function hidden([name, value]: readonly [string, string]): Html {
  return html`<input type="hidden" name="${name}" value="${value}">
`;
}

function userChoice({ id, name, domain }: EmulatorUser, index: number): Html {
  const checked = html`${index === 0 ? ' checked' : ''}`;
  return html`<label class="user"><input type="radio" name="user" value="${id}"${checked}>
<span><b>${name}</b><span class="soft">${domain === undefined ? 'Personal account' : `Organization ${domain}`}</span></span></label>
`;
}

function scopeItem(scope: string, scopes: Scopes): Html {
  const words = Object.hasOwn(scopes, scope) ? scopes[scope] : undefined;
  return html`<li>${words === undefined ? 'Use' : words} <code>${scope}</code></li>
`;
}

function placeOf(redirectUri: string): string {
  const { host, protocol } = new URL(redirectUri);
  return host === '' ? `the application (${protocol})` : host;
}
