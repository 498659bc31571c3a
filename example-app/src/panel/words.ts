import type { GrantLostEvent, RefreshEvent } from 'passport-oauth-app';
import { type Html, html } from '../html.js';
import type { Entry } from './journal.js';

/** An entry in words. */
export interface Words {
  readonly title: string;
  readonly note: string;
  readonly good: boolean;
}

const outcomes: Readonly<Record<RefreshEvent['outcome'], readonly [title: string, note?: string]>> = {
  refreshed: ['Token refreshed'],
  adopted: ['Used a token from another process', 'it refreshed first, so no request was needed'],
  unsaved: ['Token refreshed, not saved yet', 'the token store failed, so the tokens are kept in memory'],
  saved: ['Token saved', 'the token store works again'],
  discarded: ['Refreshed token discarded', 'the grant was deleted or replaced during the refresh'],
  failed: ['Refresh failed'],
};
const triggers: Readonly<Record<RefreshEvent['trigger'], string>> = {
  ahead: 'before it expired, while requests used the old one',
  expired: 'the old one had expired, so requests waited for the new one',
  refused: 'the service rejected the old one',
  'keep-alive': 'to keep an idle user logged in',
  retry: 'the response of the refresh before was lost',
};
const losses: Readonly<Record<GrantLostEvent['reason'], string>> = {
  refused: 'the service refused the refresh token',
  expired: 'the refresh token has expired',
  'other-subject': 'the service returned tokens of another user',
  unreadable: 'the stored record is unreadable',
};
const reasons: Readonly<Record<string, string>> = {
  ERR_SERVICE_UNAVAILABLE: 'the service does not answer',
  ERR_SERVICE_TIMEOUT: 'the service does not answer in time',
  ERR_TOKEN_STORE: 'the token store does not answer',
  ERR_TOKEN_REFUSED: 'the service rejects the client secret',
  ERR_TOKEN_STORE_TIMEOUT: 'the token store does not answer in time',
  ERR_TOKEN_STORE_LOCKED: 'another process holds the grant’s lock',
  ERR_TOKEN_RESPONSE: 'the token endpoint sent an unusable response',
  ERR_NOT_AUTHORIZED: 'the user is logged out',
};
const maxLines = 40;

/** Returns the code of an error in words. */
export function reasonWords(code: string | undefined): string | undefined {
  return code === undefined ? undefined : (reasons[code] ?? 'the service rejected it');
}

/** Returns an entry in words. */
export function wordsFor({ kind, event }: Entry): Words {
  if (kind === 'grant-lost') return { title: 'Access ended', note: losses[event.reason], good: false };
  const ms = `${Math.max(1, Math.round(event.durationMs))} ms`;
  if (kind === 'login') return { title: 'Logged in', note: `code exchanged for tokens, ${ms}`, good: true };
  const reason = reasonWords(event.reason);
  if (kind === 'refresh') {
    const [title, note = reason ?? triggers[event.trigger]] = outcomes[event.outcome];
    return { title, note: `${note}, ${ms}`, good: !reason && event.outcome !== 'unsaved' };
  }
  const tries = event.attempts > 1 ? `, ${event.attempts} attempts` : '';
  const note = `${event.status ?? reason ?? 'no answer'}${tries}, ${ms}`;
  return { title: `${event.method} ${event.path}`, note, good: !reason };
}

/** Returns the time of day of the server, to the second. */
export function clockTime(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}

/** Returns the log, newest first. Identical API calls in a row share a line. */
export function logView(entries: readonly Entry[]): Html {
  const lines: Entry[][] = [];
  for (const entry of entries.toReversed()) {
    const above = lines.at(-1);
    if (above?.[0] && look(entry) === look(above[0])) above.push(entry);
    else if (lines.push([entry]) > maxLines) break;
  }
  return html`<ol>${lines.slice(0, maxLines).map(line)}</ol>`;
}

/** Returns what a line says of an API call; anything else has a line of its own. */
function look({ kind, event, requests }: Entry): unknown {
  return kind === 'api' ? [event.path, event.status, event.reason, requests.length].join() : event;
}

function line(alike: readonly Entry[]): Html {
  const [latest] = alike;
  if (!latest) return html``;
  const { at, requests } = latest;
  const { title, note, good } = wordsFor(latest);
  const pids = [...new Set(alike.map(({ pid }) => pid))].sort((one, other) => one - other);
  const received = requests.map(
    ({ method, host, path, outcome, detail }) =>
      html`<li><code><b>${method}</b> ${host}<wbr>${path} <b data-good="${String(/^[23]/.test(outcome))}">${outcome}</b> ${detail}</code></li>`,
  );
  return html`<li class="entry">
<p class="row"><b data-good="${String(good)}">${alike.length > 1 ? `${alike.length} × ` : ''}${title}</b> <time datetime="${new Date(at).toISOString()}">${clockTime(at)}</time></p>
<p class="soft">${note} · process${pids.length > 1 ? 'es' : ''} ${pids.join(' and ')}</p>
${received.length > 0 ? html`<ul aria-label="Received by the service">${received}</ul>` : undefined}
</li>`;
}
