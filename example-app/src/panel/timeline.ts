import { type Html, html } from '../html.js';
import { type Entry, type Story, startOf } from './journal.js';
import { reasonWords } from './words.js';

/** A stretch of time, in epoch milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The time in which one access token was in use. The number is 1 for the token of the login. */
type TokenSpan = Span & { readonly number: number };

/** A request to the token endpoint, with the number of the token that it brought, or to the API. */
type RequestSpan = Span & {
  readonly good: boolean;
  readonly title: string;
  readonly token?: number | undefined;
  /** True if the service rejected the token, and the call was repeated with a new one. */
  readonly isRepeated?: boolean;
};

/** The last seconds of a grant. */
export type Timeline = ReturnType<typeof timelineOf>;

/** The usual length of a timeline, and that of one right after an incident, in milliseconds. */
const usualMs = 100_000;
const zoomedMs = 20_000;
/** How many colours the style sheet has for tokens. */
const colours = 6;

/** Returns what happened to a grant in the last 100 seconds, or in 20 seconds if they show the latest incident. */
export function timelineOf({ entries }: Story, to: number, incidentAt = -usualMs) {
  const from = to - (to - incidentAt < zoomedMs ? zoomedMs : usualMs);
  const inWindow = <T extends Span>(spans: readonly T[]) =>
    spans
      .filter((span) => span.to > from && span.from <= to)
      .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, to) }));
  const tokens = tokenSpans(entries, { from, to });
  return {
    from,
    to,
    tokens: inWindow(tokens),
    /** From a failed refresh to the next good one. */
    outages: inWindow(outageSpans(entries, to)),
    tokenRequests: inWindow(entries.flatMap(tokenRequest)),
    apiCalls: inWindow(entries.flatMap((entry, index) => apiCall(entry, entries.slice(index + 1)))),
    /** True if a token is in use at the end. */
    hasToken: tokens.at(-1)?.to === to,
  };
}

/** A token is in use from the end of the request that brought it until the next one, or until it can be used no more. */
function tokenSpans(entries: readonly Entry[], { from, to }: Span): TokenSpan[] {
  const spans: TokenSpan[] = [];
  // With a token that lives for hours, the journal no longer has the entry that brought it: it is the one before the next.
  const { token: next = 2 } = entries.find(({ token }) => token !== undefined) ?? {};
  let number = next - 1;
  let usedFrom = number > 0 ? from : undefined;
  for (const entry of entries) {
    const { kind, event, at, token } = entry;
    const adopted = kind === 'refresh' && event.outcome === 'adopted';
    // Ahead of its expiry a token is still used; after all other refreshes, requests have waited.
    const waited = kind === 'refresh' && event.trigger !== 'ahead' && !adopted && event.outcome !== 'saved';
    const ended = kind === 'grant-lost' || waited;
    if (usedFrom !== undefined && (token || ended)) {
      spans.push({ number, from: usedFrom, to: ended ? startOf(entry) : at });
      usedFrom = undefined;
    }
    number = token ?? number;
    if (token || adopted) usedFrom ??= at;
  }
  return usedFrom === undefined ? spans : [...spans, { number, from: usedFrom, to }];
}

/** An outage goes from a failed refresh to the next one that did not fail. The end of a grant ends it too. */
function outageSpans(entries: readonly Entry[], now: number): Span[] {
  const changes = entries.filter(({ kind }) => kind === 'refresh' || kind === 'grant-lost');
  const failed = ({ kind, event }: Entry) =>
    kind === 'refresh' && event.outcome === 'failed' && event.reason !== 'ERR_NOT_AUTHORIZED';
  return changes.flatMap((entry, index) => {
    const goesOn = changes.slice(0, index).slice(-1).some(failed);
    if (goesOn || !failed(entry)) return [];
    const end = changes.slice(index).find((one) => !failed(one));
    return [{ from: startOf(entry), to: end?.at ?? now }];
  });
}

function tokenRequest(entry: Entry): RequestSpan[] {
  const { kind, event, at: to, token } = entry;
  if (kind !== 'login' && kind !== 'refresh') return [];
  const from = startOf(entry);
  if (token) return [{ from, to, good: true, token, title: kind === 'login' ? 'Login' : 'Refresh' }];
  // None of these took a request.
  const isFree = event.outcome === 'adopted' || event.outcome === 'saved' || event.reason === 'ERR_TOKEN_STORE';
  return isFree ? [] : [{ from, to, good: false, title: reasonWords(event.reason) ?? event.outcome }];
}

function apiCall(entry: Entry, later: readonly Entry[]): RequestSpan[] {
  if (entry.kind !== 'api') return [];
  const { method, path, status, reason } = entry.event;
  const isSecondTry = ({ kind, event }: Entry) => kind === 'api' && event.path === path && event.attempts === 2;
  const isRepeated = status === 401 && entry.event.attempts === 1 && later.some(isSecondTry);
  const title = `${method} ${path}: ${status ?? reasonWords(reason)}${isRepeated ? ', then repeated' : ''}`;
  return [{ from: startOf(entry), to: entry.at, good: reason === undefined || isRepeated, title, isRepeated }];
}

/** Shown to visitors who have not logged in: two tokens, an outage, and the token after it. */
export function sampleTimeline(): Timeline {
  const [from, to] = [62_000, 80_000];
  const request = (at: number, good: boolean, title: string) => ({ from: at, to: at, good, title });
  const tokens = [
    { number: 1, from: 3_000, to: 36_000 },
    { number: 2, from: 36_000, to: from },
    { number: 3, from: to, to: usualMs },
  ];
  const refreshes = tokens.map(({ number, from }) => ({ ...request(from, true, 'Refresh'), token: number }));
  const failed = [from, 66_000, 73_000].map((at) => request(at, false, 'Refresh'));
  const calls = Array.from({ length: 24 }, (_, index) => 5_000 + index * 4_000);
  return {
    ...{ from: 0, to: usualMs, hasToken: true, tokens, outages: [{ from, to }] },
    tokenRequests: [...refreshes, ...failed],
    apiCalls: calls.map((at) => request(at, at < from || at >= to, 'GET /projects')),
  };
}

/** Draws a timeline: the tokens, the requests to the token endpoint, the API calls. Works at any width. */
export function timelineDrawing({ from, to, tokens, outages, tokenRequests, apiCalls }: Timeline): Html {
  const x = scale({ from, to }, 100);
  const seconds = Math.round((to - from) / 1000);
  const failed = apiCalls.filter(({ good }) => !good).length;
  return html`<svg class="drawing" width="100%" height="182" role="img" aria-label="The last ${seconds} seconds: ${tokens.length} tokens,
${tokenRequests.length} token requests, ${apiCalls.length} API calls of which ${failed} failed, ${outages.length} outages">
<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line stroke="var(--bad)" stroke-width="2" y2="7"/></pattern></defs>
${[0, 25, 50, 75, 100].map((at) => html`<line stroke="var(--line)" x1="${at}%" x2="${at}%" y1="20" y2="156"/>`)}
${outages.map((span) => html`<rect fill="url(#hatch)" fill-opacity="0.55" ${place(x, span)} y="20" height="136"><title>Outage</title></rect>`)}
<text x="0" y="13">Access token</text>${tokens.map((token) => tokenBar(x, token))}
<text x="0" y="70">Token endpoint</text>${tokenRequests.map((request) => mark(x, request, 76))}
<text x="0" y="117">API calls</text>${apiCalls.map((call) => mark(x, call, 123))}
<text class="axis" x="0" y="176">${seconds} s ago</text>
<text class="axis" x="50%" y="176" text-anchor="middle">${seconds / 2} s</text>
<text class="axis" x="100%" y="176" text-anchor="end">now</text>
</svg>
<p class="legend"><span><svg width="14" height="11" aria-hidden="true"><rect fill="url(#hatch)" width="14" height="11"/></svg>Outage</span><span><svg width="14" height="11" aria-hidden="true"><rect fill="var(--repeated)" width="14" height="11"/></svg>Rejected, then repeated</span><span><b aria-hidden="true">×</b> Failed</span></p>`;
}

function tokenBar(x: Scale, { number, from, to }: TokenSpan): Html {
  const label = html`<text class="number" x="${x(from) + 1}%" y="40">${number}</text>`;
  return html`<rect fill="${colourOf(number)}" ${place(x, { from, to })} y="22" height="26" rx="4"><title>Token ${number}</title></rect>${x(to) - x(from) > 4 ? label : undefined}`;
}

/** A request: a line, or a bar where it took long; a cross where it failed. */
function mark(x: Scale, { good, token, title, from, to, isRepeated }: RequestSpan, y: number): Html {
  const width = x(to) - x(from);
  const isThin = width < 100 / 150;
  if (!good && isThin)
    return html`<text class="failed" x="${x(from)}%" y="${y + 19}" text-anchor="middle">×<title>${title}</title></text>`;
  const passed = isRepeated ? 'var(--repeated)' : 'var(--soft)';
  const fill = good ? (token === undefined ? passed : colourOf(token)) : 'var(--bad)';
  return html`<rect fill="${fill}" x="${x(from)}%" width="${isThin ? '3' : `${width}%`}" y="${y}" height="24" rx="1.5"><title>${title}</title></rect>`;
}

function colourOf(token: number): string {
  return `var(--token-${token % colours})`;
}

/** The position of a time in a drawing, in per cent. */
type Scale = (at: number) => number;

/** Returns the scale from 0 to `width` between the ends of a span. */
export function scale({ from, to }: Span, width: number): Scale {
  return (at) => Math.round(((at - from) / Math.max(1, to - from)) * width * 100) / 100;
}

/** Returns the attributes of a rectangle that shows a span. */
export function place(x: Scale, { from, to }: Span): Html {
  const width = Math.max(0.6, x(to) - x(from));
  return html`x="${Math.min(x(from), 99.4)}%" width="${Math.round(width * 100) / 100}%"`;
}
