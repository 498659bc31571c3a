import { type Html, html } from '../pages/html.js';
import type { Entry, SeenRequest } from './journal.js';
import { clockTime, wordsFor } from './words.js';

const maxLines = 40;

/** Returns the log, newest first. API calls in a row that went alike share a line. */
export function logView(entries: readonly Entry[]): Html {
  const lines: Entry[][] = [];
  for (const entry of entries.toReversed()) {
    const above = lines.at(-1);
    if (above?.[0] && isAlike(above[0], entry)) above.push(entry);
    else if (lines.push([entry]) > maxLines) break;
  }
  return html`<ol>${lines.slice(0, maxLines).map(line)}</ol>`;
}

function isAlike(one: Entry, other: Entry): boolean {
  if (one.kind !== 'api' || other.kind !== 'api') return false;
  const { path, status, reason } = one.event;
  const isSame = path === other.event.path && status === other.event.status && reason === other.event.reason;
  return isSame && one.requests.length === other.requests.length;
}

function line(alike: readonly Entry[]): Html {
  const [latest] = alike;
  if (!latest) return html``;
  const { title, note, good } = wordsFor(latest);
  const pids = [...new Set(alike.map(({ pid }) => pid))].sort((one, other) => one - other);
  const count = alike.length > 1 ? `${alike.length} × ` : '';
  return html`<li class="entry" data-kind="${latest.kind}" data-good="${String(good)}">
<p><b>${count}${title}</b> <time datetime="${new Date(latest.at).toISOString()}">${clockTime(latest.at)}</time></p>
<p class="soft">${note} · process${pids.length > 1 ? 'es' : ''} ${pids.join(' and ')}</p>
${latest.requests.length > 0 ? html`<ul aria-label="Received by the service">${latest.requests.map(requestView)}</ul>` : undefined}
</li>`;
}

function requestView({ method, host, path, outcome, detail }: SeenRequest): Html {
  return html`<li><b>${method}</b> ${host}<wbr>${path} <b class="outcome" data-good="${String(/^[23]/.test(outcome))}">${outcome}</b> <span class="soft">${detail}</span></li>`;
}
