import { type Html, html } from '../pages/html.js';
import { type Burst, type BurstRow, countedOutcomes } from './burst.js';
import type { RequestSpan, Span, Timeline, TokenSpan } from './timeline.js';

/** How many colours the style sheet has for tokens. */
const colours = 6;
/** Spans that take less than this share of the timeline are drawn as thin lines of a fixed width. */
const thinShare = 1 / 150;

/** Draws a timeline: the tokens, the requests to the token endpoint, the API calls. Works at any width. */
export function timelineDrawing(timeline: Timeline): Html {
  const x = scale(timeline, 100);
  const seconds = Math.round((timeline.to - timeline.from) / 1000);
  const thinMs = (timeline.to - timeline.from) * thinShare;
  const { tokens, outages, tokenRequests, apiCalls } = timeline;
  const failed = apiCalls.filter(({ good }) => !good).length;
  return html`<svg class="drawing" width="100%" height="182" role="img" aria-label="The last ${seconds} seconds: ${tokens.length} tokens,
${tokenRequests.length} token requests, ${apiCalls.length} API calls of which ${failed} failed, ${outages.length} outages">
<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" y2="7"/></pattern></defs>
${[0, 25, 50, 75, 100].map((at) => html`<line class="grid" x1="${at}%" x2="${at}%" y1="20" y2="156"/>`)}
${outages.map((span) => html`<rect class="outage" fill="url(#hatch)" ${place(x, span)} y="20" height="136"><title>Outage</title></rect>`)}
<text x="0" y="13">Access token</text>
${tokens.map((token) => tokenBar(x, token))}
<text x="0" y="70">Token endpoint</text>
${tokenRequests.map((span) => mark(x, span, 76, thinMs))}
<text x="0" y="117">API calls</text>
${apiCalls.map((span) => mark(x, span, 123, thinMs))}
<text class="axis" x="0" y="176">${seconds} s ago</text>
<text class="axis" x="50%" y="176" text-anchor="middle">${seconds / 2} s</text>
<text class="axis" x="100%" y="176" text-anchor="end">now</text>
</svg>`;
}

function tokenBar(x: (at: number) => number, token: TokenSpan): Html {
  const label =
    x(token.to) - x(token.from) > 4 ? html`<text x="${x(token.from) + 1}%" y="40">${token.number}</text>` : undefined;
  return html`<g class="token ${colourOf(token.number)}"><rect ${place(x, token)} y="22" height="26" rx="4"><title>Token ${token.number}</title></rect>${label}</g>`;
}

/** A request: a line, or a bar where it took long; a cross where it failed. */
function mark(x: (at: number) => number, span: RequestSpan, y: number, thinMs: number): Html {
  const { good, token, title, from, to } = span;
  const place = html`x="${x(from)}%"`;
  if (!good && to - from < thinMs)
    return html`<text class="failed" ${place} y="${y + 19}" text-anchor="middle">×<title>${title}</title></text>`;
  const width = to - from < thinMs ? '3' : `${x(to) - x(from)}%`;
  const look = good ? (token === undefined ? 'call' : colourOf(token)) : 'failed';
  return html`<rect class="mark ${look}" ${place} width="${width}" y="${y}" height="24" rx="1.5"><title>${title}</title></rect>`;
}

/** Draws a burst as a waterfall: one row for the refresh, one for each call. */
export function burstDrawing(burst: Burst): Html {
  const x = scale(burst, 92);
  const height = 44 + burst.rows.length * 15;
  return html`<svg class="drawing" width="100%" height="${height}" role="img" aria-label="${burstSentence(burst)}">
<text x="0" y="11">${burst.refreshes.length > 0 ? 'Refresh' : 'No refresh'}</text>
<text class="axis" x="100%" y="11" text-anchor="end">${Math.round(burst.to - burst.from)} ms</text>
${burst.refreshes.map(
  (span) =>
    html`<rect class="held" ${place(x, span)} y="28" height="${height - 28}"/><rect class="mark refresh" ${place(x, span)} y="18" height="10" rx="2"/>`,
)}
${burst.rows.map((row, index) => burstRow(x, row, 36 + index * 15))}
</svg>`;
}

function burstRow(x: (at: number) => number, row: BurstRow, y: number): Html {
  const whole = html`<rect class="waiting" ${place(x, row)} y="${y + 4}" height="3"/>`;
  const attempts = row.attempts.map(
    ({ from, to, outcome }) =>
      html`<rect class="mark ${/^2/.test(outcome) ? 'call' : 'failed'}" ${place(x, { from, to })} y="${y}" height="11" rx="1.5"><title>Call ${row.number}: ${outcome}</title></rect>`,
  );
  return html`${whole}${attempts}<text class="status" x="100%" y="${y + 10}" text-anchor="end">${/^\d+$/.test(row.outcome) ? row.outcome : '×'}</text>`;
}

/** Returns a burst in words, such as `12 waited, 1 refresh, 12 × 200, 0 lost logins`. */
export function burstSentence({ rows, refreshes, waited, lostLogins }: Burst): string {
  const processes = new Set(rows.map(({ pid }) => pid)).size;
  return [
    `${waited} waited`,
    `${refreshes.length} ${refreshes.length === 1 ? 'refresh' : 'refreshes'}`,
    ...countedOutcomes(rows),
    `${lostLogins} lost ${lostLogins === 1 ? 'login' : 'logins'}`,
    ...(processes > 1 ? [`${processes} processes`] : []),
  ].join(', ');
}

/** Returns the position of a time between the ends of a span, from 0 to `width` per cent. */
function scale({ from, to }: Span, width: number): (at: number) => number {
  return (at) => Math.round(((at - from) / Math.max(1, to - from)) * width * 100) / 100;
}

function place(x: (at: number) => number, { from, to }: Span): Html {
  const width = Math.max(0.6, x(to) - x(from));
  return html`x="${Math.min(x(from), 99.4)}%" width="${Math.round(width * 100) / 100}%"`;
}

function colourOf(token: number): string {
  return `token-${token % colours}`;
}
