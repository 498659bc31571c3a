import { type Html, html } from '../pages/html.js';
import { latestBurst } from './burst.js';
import { burstDrawing, burstSentence, timelineDrawing } from './drawing.js';
import type { Story } from './journal.js';
import { logView } from './log-view.js';
import { sampleTimeline } from './sample-timeline.js';
import { type Timeline, timelineOf } from './timeline.js';
import type { TokenState } from './token-state.js';
import { clockTime, reasonWords, wordsFor } from './words.js';

/** The state of one grant that the panel shows. */
export interface PanelContent {
  readonly story: Story;
  /** `undefined` if there is no valid token at this moment. */
  readonly token: TokenState | undefined;
  /** False once the grant has ended. */
  readonly authorized: boolean;
  /** When the visitor's latest incident began, in epoch milliseconds. */
  readonly incidentAt: number | undefined;
  /** Epoch milliseconds, by the clock of the server. */
  readonly now: number;
}

/** The pieces of a page that change while it is open. */
export type PanelParts = Readonly<Record<'guide' | 'token' | 'timeline' | 'burst' | 'latest' | 'log', Html>>;

const timelineLegend = html`<p class="legend"><span class="key-outage">Outage</span><span class="key-failed">Failed</span></p>`;

/** Returns the pieces of the panel as they are now. A page contains them, and the stream sends those that have changed. */
export function panelParts({ story, token, authorized, incidentAt, now }: PanelContent): PanelParts {
  const timeline = timelineOf(story, now, incidentAt);
  const latestOfAll = latestBurst(story.entries);
  // One that ended before the latest incident would be taken for what came of it.
  const burst = latestOfAll && latestOfAll.to >= (incidentAt ?? 0) ? latestOfAll : undefined;
  const latest = story.entries.findLast(({ kind }) => kind !== 'api');
  const words = latest && wordsFor(latest);
  return {
    guide: guide(authorized ? story : undefined),
    token: tokenView(story, timeline, { token, authorized, now }),
    timeline: html`${timelineDrawing(timeline)}${timelineLegend}`,
    burst: burst
      ? html`<h3>The latest burst</h3>${burstDrawing(burst)}
<p class="legend"><span class="key-refused">Refused</span><span class="key-waiting">Waits for the refresh</span><span class="key-call">Answered</span></p>
<p class="sentence">${burstSentence(burst)}</p>`
      : html``,
    latest: words ? html`<b>${words.title}</b>: ${words.note}` : html``,
    log: logView(story.entries),
  };
}

/** Returns the first minute in three steps. @param story `undefined` before the login */
export function guide(story: Story | undefined): Html {
  const step = (done: boolean, title: string, text: string) =>
    html`<li class="${done ? 'done' : 'open'}"><b>${title}${done ? html` <span class="tick">✓<span class="hidden"> done</span></span>` : undefined}</b><span class="about">${text}</span></li>`;
  return html`${step(story !== undefined, 'Log in', 'Approve on the page of the service. A code becomes tokens; they stay on the server.')}
${step(story?.ranDown === true, 'Let the token run down', 'Leave this page open for half a minute. A new token comes before the old one ends.')}
${step(story?.recovered === true, 'Break the service', 'Press “Service down for 30 s”. Calls fail, the login stays, and then they work again.')}`;
}

/** Returns the panel beside a page. The script keeps its parts up to date; without it they show the moment of the page. */
export function panelView(content: PanelContent): Html {
  const { token, timeline, burst, latest, log } = panelParts(content);
  return html`<section class="panel" aria-labelledby="panel-title" data-panel="/panel/events">
<div class="panel-head">
<h2 id="panel-title">What happens to your token</h2>
<p class="live"><span data-live>As of ${clockTime(content.now)}</span></p>
</div>
<div data-part="token">${token}</div>
<div data-part="timeline">${timeline}</div>
<div data-part="burst">${burst}</div>
<p class="latest" role="status" data-part="latest">${latest}</p>
<details>
<summary>Log: every event, and what the service received</summary>
<div class="log" role="region" aria-label="Log, newest first" tabindex="0" data-part="log">${log}</div>
</details>
</section>`;
}

/** The panel of a visitor who has not logged in. */
export const idlePanel: Html = html`<section class="panel" aria-labelledby="panel-title">
<div class="panel-head"><h2 id="panel-title">What happens to your token</h2></div>
<p>An example: two tokens, an outage of the service, and the token after it. Log in to see your own.</p>
${timelineDrawing(sampleTimeline)}
${timelineLegend}
</section>`;

/** The panel of a page whose visitor has logged out, in this tab or another one. */
export const endedPanel: Html = html`<div class="panel-head"><h2 id="panel-title">What happened to your token</h2></div>
<p role="status">You are logged out, or your permission has ended. <a href="/login">Log in to go on.</a></p>`;

function tokenView(
  story: Story,
  timeline: Timeline,
  { token, authorized, now }: Pick<PanelContent, 'token' | 'authorized' | 'now'>,
): Html {
  if (!authorized) return html`<p class="token-line"><span>Access token</span><b>None: the login has ended</b></p>`;
  const refreshed =
    story.refreshes === 0
      ? html`<p class="soft">Not refreshed yet.</p>`
      : html`<p class="soft">Refreshed <b>${times(story.refreshes)}</b> since you logged in.</p>`;
  if (!token || !timeline.hasToken) {
    const reason = reasonWords(story.entries.findLast(({ kind }) => kind === 'refresh')?.event.reason);
    return html`<p class="token-line"><span>Access token</span><b>No usable token</b></p>
<p class="soft">The login is kept: ${reason ?? 'there is no valid token at this moment'}.</p>${refreshed}`;
  }
  const seconds = Math.max(0, Math.round((token.expiresAt - now) / 1000));
  const lifetime = Math.max(1, Math.round((token.expiresAt - token.issuedAt) / 1000));
  return html`<p class="token-line"><span>Access token</span><b>${seconds} s <small>left of ${lifetime} s</small></b></p>
<progress max="${lifetime}" value="${seconds}" aria-label="Lifetime left of the access token"></progress>${refreshed}`;
}

/** Returns `once` or `5 times`. */
function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
