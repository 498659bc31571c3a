import { isRecord } from './checks.js';
import type { Application, EmulatorUser } from './directory.js';
import type { Fault, QueuedFault } from './faults.js';
import type { GrantSummary } from './grants.js';
import { parseQuery, type Reply } from './messages.js';
import { document, type Html, html } from './page.js';
import { css, statusCss, statusScript } from './page-assets.js';
import type { ServiceRequest } from './server.js';
import type { Controls } from './state.js';

const maxShown = 50;

/** The faults that have a button. */
const buttons: readonly (readonly [label: string, fault: Fault])[] = [
  ['503, retry in 2 s', { status: 503, headers: { 'retry-after': '2' } }],
  ['500 error', { status: 500 }],
  ['429, retry in 2 s', { status: 429, headers: { 'retry-after': '2' } }],
  ['invalid_grant', { body: { error: 'invalid_grant' } }],
  ['HTML page', { status: 502, body: '<h1>Bad gateway</h1>' }],
  ['Never respond', { hang: true }],
  ['Reset connection', { reset: true }],
  ['Lose the response', { afterEffect: true }],
  ['Delay 2 s', { delay: 2000 }],
  ['Delay 0.1 to 3 s', { delay: [100, 3000] }],
];

/** Returns the page that shows the state of the service and controls it. It works without script, and updates itself with it. */
export function statusPage({ state }: Controls, origin: string): Reply {
  const { applications, users, grants, faults, requests, clock } = state;
  const now = clock.now();
  const live = grants.newest(maxShown);
  const counts = grants.countByUser();
  const recent = requests.requests.slice(-maxShown).reverse();
  const ahead = duration(Math.round(clock.offsetMs / 1000));
  const timeNote = clock.offsetMs === 0 ? html`` : html`<span class="badge warn">time moved by ${ahead}</span>`;
  const body = html`<header>
<h1>Emulator</h1>
<p class="soft" id="address" data-live><code>${origin}</code> ${timeNote}</p>
<a href="/_emulator/openapi.json">Control over HTTP</a>
</header>
<p role="status" id="problem"></p>
<main>
<div class="column">
${card('faults', 'Faults', faultForm(), html`<div id="queue" data-live>${faultQueue(faults.queue)}</div>`)}
${card('time', 'Time and tokens', timeForms())}
${card('users', 'Users', html`<ul id="user-list" data-live>${[...users.byId.values()].slice(0, maxShown).map((user) => userItem(user, counts.get(user.id) ?? 0))}</ul>`)}
${card('applications', 'Applications', html`<div id="application-list" data-live>${[...applications.byId.values()].slice(0, maxShown).map(applicationItem)}</div>`)}
</div>
<div class="column">
${card('grants', 'Live grants', html`<div id="grant-list" data-live>${grantList(live, state, now)}</div>`)}
${card('requests', 'Requests', html`<div id="request-list" data-live>${requestList(recent, state.requests)}</div>`)}
</div>
</main>`;
  const reply = document(200, { title: 'Emulator', css: css + statusCss, script: statusScript, body });
  return { ...reply, body: String(reply.body).replace('<body>', `<body data-now="${now}">`) };
}

function card(id: string, title: string, ...content: readonly Html[]): Html {
  return html`<section class="card" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${content}
</section>
`;
}

function faultForm(): Html {
  const endpoint = (value: string, label: string) =>
    html`<label><input type="radio" name="endpoint" value="${value}"${html`${value === 'token' ? ' checked' : ''}`}> ${label}</label>`;
  return html`<form method="post" action="/_emulator/faults">
<fieldset><legend>Next request to</legend>
<div class="segments">${endpoint('token', 'Token')}${endpoint('api', 'API')}${endpoint('authorize', 'Authorize')}${endpoint('revoke', 'Revoke')}</div>
</fieldset>
<label class="check"><input type="checkbox" name="times" value="Infinity"> Every request until removed</label>
<div class="buttons">
${buttons.map(([label, fault]) => html`<button name="fault" value="${JSON.stringify(fault)}">${label}</button>`)}
</div>
</form>
`;
}

function faultQueue(queue: readonly QueuedFault[]): Html {
  if (queue.length === 0) return html``;
  const item = ({ id, endpoint, fault, left }: QueuedFault) => html`<li><span><b>${endpoint}</b>
<span class="soft">${faultText(fault)}${Number.isFinite(left) ? (left > 1 ? `, ${left} times` : '') : ', every request'}</span></span>
${action(`/_emulator/faults/${id}?_method=DELETE`, 'Remove', { label: `Remove fault ${id}`, small: true })}</li>`;
  return html`<ul aria-label="Queued faults">${queue.slice(0, maxShown).map(item)}</ul>
${action('/_emulator/faults?_method=DELETE', 'Remove all faults', {})}`;
}

function faultText({ times: _times, ...fault }: Fault): string {
  const known = buttons.find(([, its]) => JSON.stringify(its) === JSON.stringify(fault));
  const text = Object.keys(fault).length === 0 ? '500 error' : shortened(fault).replaceAll(/["\n{}]| {2,}/g, '');
  return known?.[0] ?? text;
}

function timeForms(): Html {
  const advance = (seconds: number, label: string) =>
    html`<button name="seconds" value="${String(seconds)}">${label}</button>`;
  return html`<form method="post" action="/_emulator/advance"><div class="buttons three">
${advance(60, '+ 1 min')}${advance(3600, '+ 1 hour')}${advance(86_400, '+ 1 day')}</div></form>
${action('/_emulator/expire-access-tokens', 'Expire all access tokens', {})}
${action('/_emulator/reset', 'Reset everything', { danger: true })}`;
}

function action(
  path: string,
  text: string,
  how: { label?: string; small?: boolean; danger?: boolean },
  hidden = html``,
): Html {
  const kind = [how.small ? 'small' : '', how.danger ? 'danger' : ''].join(' ').trim();
  return html`<form method="post" action="${path}">${hidden}<button class="${kind}" data-key="${path}${how.label ?? ''}" aria-label="${how.label ?? text}">${text}</button></form>`;
}

function userItem({ id, name, domain }: EmulatorUser, grants: number): Html {
  const account = domain === undefined ? 'Personal account' : `Organization ${domain}`;
  const hidden = html`<input type="hidden" name="userId" value="${id}">`;
  const revoke = action('/_emulator/revoke', 'Revoke', { label: `Revoke the grants of ${name}`, small: true }, hidden);
  return html`<li><span><b>${name}</b> <code>${id}</code><span class="soft">${account}${grants > 0 ? `, ${grants} live` : ''}</span></span>
${grants > 0 ? revoke : html``}</li>`;
}

function applicationItem({ name, clientID, clientSecret, redirectUrls }: Application): Html {
  return html`<dl><dt>Name</dt><dd>${name}</dd><dt>Client ID</dt><dd><code>${clientID}</code></dd>
<dt>Secret</dt><dd><code>${clientSecret}</code></dd>
<dt>Redirects</dt><dd>${redirectUrls.map((url) => html`<code>${url}</code> `)}</dd></dl>`;
}

function grantList(grants: readonly GrantSummary[], { applications, users }: Controls['state'], now: number): Html {
  if (grants.length === 0)
    return html`<p class="empty">No grants yet. Log in through an application to see one here.</p>`;
  const item = ({ clientID, userId, scopes, expiresAt }: GrantSummary) => {
    const left = Math.ceil((expiresAt - now) / 1000);
    return html`<li><span><b>${users.byId.get(userId)?.name ?? userId}</b>
<span class="soft">${applications.byId.get(clientID)?.name ?? clientID}: ${scopes.join(', ') || 'no scope'}</span></span>
<span class="badge ${left > 0 ? 'good' : 'bad'}"><time class="life" data-expires="${String(expiresAt)}">${left > 0 ? duration(left) : 'expired'}</time></span></li>`;
  };
  return html`<ul>${grants.map(item)}</ul>`;
}

function requestList(requests: readonly ServiceRequest[], log: Controls['state']['requests']): Html {
  if (!log.isOn) return html`<p class="empty">keepRequests is 0, so no requests are recorded.</p>`;
  if (requests.length === 0) return html`<p class="empty">No requests yet. They appear here as they arrive.</p>`;
  const items = requests.map((request) => {
    const { id = 0, host = '', result } = log.records.get(request) ?? {};
    const { method, path, query, body } = request;
    const place = shortened(/\.(api|localhost)\b/.test(host) ? `${host}${path}` : path);
    const { outcome, at = 0, durationMs = 0 } = result ?? {};
    const time =
      result === undefined ? '' : `${new Date(at).toTimeString().slice(0, 8)} · ${Math.round(durationMs)} ms`;
    const ended = typeof outcome === 'number' ? (outcome < 400 ? 'good' : outcome < 500 ? 'warn' : 'bad') : 'bad';
    const kind = outcome === undefined ? '' : ended;
    const details = [
      Object.keys(query).length > 0 ? html`<pre>${shortened(query)}</pre>` : html``,
      body === undefined ? html`` : html`<pre>${shortened(body)}</pre>`,
    ];
    const isBare = Object.keys(query).length === 0 && body === undefined;
    return html`<li><details id="request-${String(id)}"><summary data-key="request-${String(id)}"><span class="method">${method}</span>
<span class="path">${place}</span><span class="soft">${time}</span><span class="badge ${kind}">${String(outcome ?? 'open')}</span></summary>
${isBare ? html`<pre>No query, no body</pre>` : details}</details></li>`;
  });
  return html`<ul class="requests">${items}</ul>`;
}

function duration(seconds: number): string {
  const sign = seconds < 0 ? '−' : '';
  const whole = Math.abs(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours > 0) return `${sign}${hours} h ${minutes} min`;
  return minutes > 0 ? `${sign}${minutes} min ${whole % 60} s` : `${sign}${whole} s`;
}

const secretName = /secret|token|code|verifier|password|assertion|authorization|cookie/i;
const longRun = /[\w.~+/-]{24,}/g;
const maxLength = 4000;

/**
 * Returns a body or a query as readable text without secrets: the values of secret fields, and everything that looks like a token, are
 * shortened.
 */
export function shortened(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  const form = typeof value === 'string' && /^[\w.-]+=/.test(value) ? parseQuery(value) : undefined;
  const shown = form ?? value;
  const clean = typeof shown === 'string' ? shortenRuns(shown) : withoutSecrets(shown, '');
  const line = typeof clean === 'string' ? clean : JSON.stringify(clean);
  // Indentation can make a long text far longer.
  const text = typeof clean === 'string' || line.length > maxLength ? line : JSON.stringify(clean, undefined, 2);
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function withoutSecrets(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, name));
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutSecrets(item, key)]));
  }
  if (typeof value !== 'string') return value;
  return secretName.test(name) && !/_(type|method)$/.test(name) ? shorten(value) : shortenRuns(value);
}

function shortenRuns(text: string): string {
  return text.replace(longRun, (run) => (/\d/.test(run) && !run.includes('//') ? shorten(run) : run));
}

function shorten(text: string): string {
  return text.length > 8 ? `${text.slice(0, 4)}…` : '…';
}
