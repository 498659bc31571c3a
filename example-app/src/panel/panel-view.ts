import type { Request } from 'express';
import { type Html, html } from '../pages/html.js';
import type { Entry, Journal, SeenRequest } from './journal.js';
import { clockTime } from './token-meter.js';

/** The panel as it stands beside a page, with what has happened so far. The script adds to it. */
export function panelView(req: Request, journal: Journal, canExpire: boolean): Html {
  const { grantId, authorized } = req.apiClient;
  if (grantId === undefined || !authorized) return idle;
  const entries = journal.of(grantId);
  const last = entries.at(-1)?.id ?? 0;
  return html`<aside aria-labelledby="panel-title" data-panel="/panel/events?after=${last}">
<div class="panel-head">
<h2 id="panel-title">Underneath</h2>
<p class="live"><span data-live>Connecting</span></p>
</div>
<p class="soft">What happens to your tokens, as it happens. Newest first.</p>
<p class="panel-actions" hidden data-needs-script>
<button type="button" class="small" data-burst="12">Make 12 requests at once</button>
${canExpire ? html`<button type="button" class="small" data-burst="12" data-expire>Expire, then 12 at once</button>` : undefined}
<span role="status" class="soft" data-burst-result></span>
</p>
<ol class="log" role="log" aria-label="What has happened" tabindex="0" data-log reversed>
${entries.toReversed().map(entryView)}
</ol>
</aside>`;
}

/** One entry of the log. */
export function entryView({ at, kind, good, title, note, pid, requests }: Entry): Html {
  return html`<li class="entry" data-kind="${kind}" data-good="${String(good)}">
<p class="entry-head"><b>${title}</b><time datetime="${new Date(at).toISOString()}">${clockTime(at)}</time></p>
<p class="entry-note">${note} <span class="pid">process ${pid}</span></p>
${requests.length > 0 ? html`<ul aria-label="At the service">${requests.map(requestView)}</ul>` : undefined}
</li>`;
}

function requestView({ method, host, path, outcome, detail }: SeenRequest): Html {
  return html`<li><p><b>${method}</b> ${host}<wbr>${path} <span class="outcome" data-good="${String(/^[23]/.test(outcome))}">${outcome}</span></p><p class="detail">${detail}</p></li>`;
}

const idle = html`<aside aria-labelledby="panel-title">
<div class="panel-head"><h2 id="panel-title">Underneath</h2></div>
<p class="soft">Log in, and each thing that happens to your tokens shows up here: the exchange of the code, every refresh,
every request, and what the service saw of it.</p>
</aside>`;
