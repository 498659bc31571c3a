import { type Html, html } from '../pages/html.js';
import type { Entry, SeenRequest } from './journal.js';
import { clockTime } from './token-meter.js';

/** What the panel shows when its page is made. */
export interface PanelContent {
  readonly entries: readonly Entry[];
  /** The bar of the token, where the page has none itself. */
  readonly meter: Html | undefined;
  /** Whether the token can be made to expire. */
  readonly canExpire: boolean;
}

/** The panel as it stands beside a page, with what has happened so far. The script adds to it. */
export function panelView({ entries, meter, canExpire }: PanelContent): Html {
  const last = entries.at(-1)?.id ?? 0;
  return html`<aside aria-labelledby="panel-title" data-panel="/panel/events?after=${last}">
<div class="panel-head">
<h2 id="panel-title">Underneath</h2>
<p class="live"><span data-live>Connecting</span></p>
</div>
<p class="soft">What happens to your tokens, as it happens.</p>
${meter}
<p class="panel-actions" hidden data-needs-script>
<button type="button" class="small" data-burst="12">12 at once</button>
${canExpire ? html`<button type="button" class="small" data-burst="12" data-expire>Expire, then 12 at once</button>` : undefined}
<span role="status" class="soft" data-burst-result></span>
</p>
<div class="log" role="log" aria-label="What has happened, newest first" tabindex="0">
<ol data-log>
${entries.toReversed().map(entryView)}
</ol>
</div>
</aside>`;
}

/** The panel where nobody is logged in. */
export const idlePanel: Html = html`<aside aria-labelledby="panel-title">
<div class="panel-head"><h2 id="panel-title">Underneath</h2></div>
<p class="soft">Log in, and each thing that happens to your tokens shows up here: the exchange of the code, every refresh,
every request, and what the service saw of it.</p>
</aside>`;

/** One entry of the log: a line, and what the service saw below it. Plain API calls are many: the script folds them into one. */
export function entryView({ at, kind, good, title, note, pid, requests }: Entry): Html {
  const isPlain = kind === 'api' && good && requests.length < 2;
  const fold = isPlain ? html` data-fold="${title}" data-pids="${pid}" data-count="1"` : undefined;
  return html`<li class="entry" data-kind="${kind}" data-good="${String(good)}"${fold}>
<details${isPlain ? undefined : html` open`}>
<summary><b>${title}</b> <span class="note">${note} · process ${pid}</span> <time datetime="${new Date(at).toISOString()}">${clockTime(at)}</time></summary>
${requests.length > 0 ? html`<ul aria-label="At the service">${requests.map(requestView)}</ul>` : undefined}
</details>
</li>`;
}

function requestView({ method, host, path, outcome, detail }: SeenRequest): Html {
  return html`<li><p><b>${method}</b> ${host}<wbr>${path} <span class="outcome" data-good="${String(/^[23]/.test(outcome))}">${outcome}</span></p><p class="detail">${detail}</p></li>`;
}
