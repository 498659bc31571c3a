import { type Html, html } from '../html.js';
import { burstDrawing, latestBurst } from './burst.js';
import type { Story } from './journal.js';
import { sampleTimeline, timelineDrawing, timelineOf } from './timeline.js';
import { clockTime, logView, reasonWords, wordsFor } from './words.js';

/** The state of one grant that the panel shows. All times are in epoch milliseconds, by the clock of the server. */
export interface PanelContent {
  readonly story: Story;
  /** When the token was issued and when it expires; `undefined` if there is no valid one at this moment. */
  readonly token: { readonly issuedAt: number; readonly expiresAt: number } | undefined;
  /** False once the grant has ended. */
  readonly authorized: boolean;
  /** When the visitor's latest incident began. */
  readonly incidentAt: number | undefined;
  readonly now: number;
}

/** Returns the parts that change while a page is open. The page contains them, and the stream sends updates. */
export function panelParts(content: PanelContent): Readonly<Record<string, Html>> {
  const { story, authorized, incidentAt, now } = content;
  const timeline = timelineOf(story, now, incidentAt);
  const burst = latestBurst(story.entries);
  const latest = story.entries.findLast(({ kind }) => kind !== 'api');
  const words = latest && wordsFor(latest);
  return {
    guide: guide(authorized ? story : undefined),
    token: tokenView(content, timeline.hasToken),
    timeline: timelineDrawing(timeline),
    // One from before the latest incident would look like its result.
    burst: burst && burst.to >= (incidentAt ?? 0) ? burstDrawing(burst) : html``,
    latest: words ? html`<b>${words.title}</b>: ${words.note}` : html``,
    log: logView(story.entries),
  };
}

/** Returns the first minute in three steps, with their buttons. @param story `undefined` before the login */
export function guide(story: Story | undefined): Html {
  const tick = html` <span role="img" aria-label="done">✓</span>`;
  const step = (done: boolean | undefined, title: string, text: string, incident?: string) =>
    html`<li><b>${title}${done ? tick : undefined}</b><p class="soft">${text}</p>${
      story && incident
        ? html`<form method="post" action="/incidents/${incident}"><button class="small" aria-label="Try it, step ${incident === 'burst' ? 2 : 3}">Try it</button></form>`
        : undefined
    }</li>`;
  const approve = 'Approve on the service’s page. The code is exchanged for tokens, which stay on the server.';
  const burst = 'All of them arrive with a rejected token. They share one refresh, and all succeed.';
  const outage = 'For 30 seconds, calls fail and you stay logged in. Then they work again.';
  return html`${step(story && true, 'Log in', approve)}${step(story?.burst, 'Make 12 calls at once', burst, 'burst')}
${step(story?.recovered, 'Break the service', outage, 'outage')}`;
}

/** Returns the panel beside a page. The script keeps its parts up to date; without it they show the moment of the page. */
export function panelView(content: PanelContent): Html {
  const { token, timeline, burst, latest, log } = panelParts(content);
  return html`<section class="panel" aria-labelledby="panel-title" data-panel="/panel/events">
<div class="row">
<h2 id="panel-title">What happens to your token</h2>
<p class="live"><span data-live>As of ${clockTime(content.now)}</span></p>
</div>
<div data-part="token">${token}</div>
<div data-part="timeline">${timeline}</div>
<div data-part="burst">${burst}</div>
<p class="small" role="status" data-part="latest">${latest}</p>
<details>
<summary>Log: every event, and what the service received</summary>
<div class="log" role="region" aria-label="Log, newest first" tabindex="0" data-part="log">${log}</div>
</details>
</section>`;
}

/** Returns the panel for visitors who are not logged in. */
export function idlePanel(): Html {
  return html`<section class="panel" aria-labelledby="panel-title">
<h2 id="panel-title">What happens to your token</h2>
<p>An example: two tokens, an outage, and the token after it. Log in to see your own.</p>
${timelineDrawing(sampleTimeline())}
</section>`;
}

/** Returns the panel for a visitor who logged out, in this tab or another one. */
export function endedPanel(): Html {
  return html`<h2 id="panel-title">What happened to your token</h2>
<p role="status">You logged out, or the service ended your access. <a href="/login">Log in again.</a></p>`;
}

function tokenView({ story, token, authorized, now }: PanelContent, hasToken: boolean): Html {
  const line = (state: string | Html) => html`<p class="row"><span>Access token</span><b>${state}</b></p>`;
  if (!authorized) return line('None: you are logged out');
  const { entries, refreshes } = story;
  const times = html`Refreshed <b>${refreshes === 1 ? 'once' : `${refreshes} times`}</b> since you logged in.`;
  const count = html`<p class="soft">${refreshes === 0 ? 'Not refreshed yet.' : times}</p>`;
  if (!token || !hasToken) {
    const reason = reasonWords(entries.findLast(({ kind }) => kind === 'refresh')?.event.reason);
    return html`${line('No usable token')}
<p class="soft">You stay logged in: ${reason ?? 'there is no valid token right now'}.</p>${count}`;
  }
  const seconds = Math.max(0, Math.round((token.expiresAt - now) / 1000));
  const lifetime = Math.max(1, Math.round((token.expiresAt - token.issuedAt) / 1000));
  return html`${line(html`${seconds} s <small>left of ${lifetime} s</small>`)}
<progress max="${lifetime}" value="${seconds}" aria-label="Lifetime left of the access token"></progress>${count}`;
}
