import type { ApiClient } from 'passport-oauth-app';
import { type Html, html } from '../html.js';
import { type Cause, causes, type Entry, startOf } from './journal.js';
import { place, type Span, scale } from './timeline.js';
import { reasonWords } from './words.js';

/** One call of a burst. In between its attempts it waited for the refresh. */
type Row = ReturnType<typeof rowOf>;

/** Calls that were made at once, and the refreshes that they waited for. */
export type Burst = NonNullable<ReturnType<typeof latestBurst>>;

/** Makes an API call for each cause, all at once. Resolves when all have ended, well or not. */
export async function runBurst(client: ApiClient, all: readonly Cause[]): Promise<void> {
  const calls = all.map((cause) => {
    const headers = { 'X-Call': `${cause.call?.burst}.${cause.call?.number}` };
    return causes.run(cause, () => client.get('/projects', { headers }));
  });
  await Promise.allSettled(calls);
}

/** Returns the latest burst among the entries of a grant. */
export function latestBurst(entries: readonly Entry[]) {
  const burst = entries.findLast(({ cause }) => cause?.call)?.cause?.call?.burst;
  const own = entries.filter(({ kind, cause }) => kind === 'api' && cause?.call && cause.call.burst === burst);
  if (own.length === 0) return undefined;
  const numbers = [...new Set(own.map(numberOf))].sort((one, other) => one - other);
  const rows = numbers.map((number) => rowOf(own.filter((entry) => numberOf(entry) === number)));
  const { from, to } = spanOf(own);
  const meanwhile = entries.filter(({ at }) => at >= from && at <= to);
  const refreshes = meanwhile
    .filter(({ kind, event }) => kind === 'refresh' && event.outcome === 'refreshed')
    .map((entry) => spanOf([entry]));
  return { from, to, rows, refreshes, lostLogins: meanwhile.filter(({ kind }) => kind === 'grant-lost').length };
}

const numberOf = ({ cause }: Entry) => cause?.call?.number ?? 0;

function spanOf(entries: readonly Entry[]): Span {
  return { from: Math.min(...entries.map(startOf)), to: Math.max(...entries.map(({ at }) => at)) };
}

/** @param entries All of one call. */
function rowOf(entries: readonly Entry[]) {
  const { from, to } = spanOf(entries);
  const [last] = entries.slice(-1);
  const requests = entries.flatMap((entry) => entry.requests);
  // The final status, or why there was none.
  const outcome = last?.kind === 'api' ? String(last.event.status ?? reasonWords(last.event.reason)) : '';
  const attempts = requests.map((request, index) => ({
    from: index === 0 ? from : request.at - request.durationMs,
    to: index === requests.length - 1 ? to : request.at,
    outcome: request.outcome,
  }));
  // A call that failed before any request has none.
  const seen = attempts.length > 0 ? attempts : [{ from, to, outcome }];
  return { number: last ? numberOf(last) : 0, from, to, outcome, pid: last?.pid ?? 0, attempts: seen };
}

/** Returns the outcomes of a burst in words: how many processes and refreshes there were, and how often each status came. */
export function outcomeWords({ rows, refreshes }: Burst): readonly string[] {
  const processes = new Set(rows.map(({ pid }) => pid)).size;
  const outcomes = [...new Set(rows.map(({ outcome }) => outcome))];
  const counts = outcomes.map((one) => `${rows.filter(({ outcome }) => outcome === one).length} × ${one}`);
  const words = [counted(refreshes.length, 'refresh', 'refreshes'), ...counts];
  return processes > 1 ? [`${processes} processes`, ...words] : words;
}

/** Returns a burst in words, such as `12 waited, 1 refresh, 12 × 200, 0 lost logins`. */
export function burstSentence(burst: Burst): string {
  const { rows, refreshes, lostLogins } = burst;
  const waited = rows.filter((row) => refreshes.some((one) => row.from <= one.to && row.to >= one.from)).length;
  return [`${waited} waited`, ...outcomeWords(burst), counted(lostLogins, 'lost login', 'lost logins')].join(', ');
}

const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;

/** Draws a burst as a waterfall: one row for the refresh, one for each call. */
export function burstDrawing(burst: Burst): Html {
  // Leaves room for the labels at the right.
  const isShared = new Set(burst.rows.map(({ pid }) => pid)).size > 1;
  const x = scale(burst, isShared ? 76 : 92);
  const height = 44 + burst.rows.length * 15;
  const bar = (span: Span, colour: string, y: number, height: number, title?: Html) =>
    html`<rect fill="var(--${colour})" ${place(x, span)} y="${y}" height="${height}" rx="1.5">${title}</rect>`;
  const pids = [...new Set(burst.rows.map(({ pid }) => pid))].sort((one, other) => one - other);
  const row = ({ number, from, to, attempts, outcome, pid }: Row, index: number) => {
    const y = 36 + index * 15;
    const attempt = (one: Row['attempts'][number], attempt: number) => {
      const isRepeated = one.outcome === '401' && attempt < attempts.length - 1;
      const colour = one.outcome.startsWith('2') ? 'soft' : isRepeated ? 'repeated' : 'bad';
      return bar(one, colour, y, 11, html`<title>Call ${number}: ${one.outcome}</title>`);
    };
    return html`${bar({ from, to }, 'waiting', y + 4, 3)}${attempts.map(attempt)}
<text class="axis" x="100%" y="${y + 10}" text-anchor="end">${pids.length > 1 ? `process ${pids.indexOf(pid) + 1}: ` : ''}${/^\d+$/.test(outcome) ? outcome : '×'}</text>`;
  };
  const key = (colour: string, text: string, height = 11) =>
    html`<span><svg width="14" height="${height}" aria-hidden="true"><rect fill="var(--${colour})" width="14" height="${height}"/></svg>${text}</span>`;
  return html`<h3>The latest burst</h3><svg class="drawing" width="100%" height="${height}" role="img" aria-label="${burstSentence(burst)}">
<text x="0" y="11">${burst.refreshes.length > 0 ? 'Refresh' : 'No refresh'}</text>
<text class="axis" x="100%" y="11" text-anchor="end">${Math.round(burst.to - burst.from)} ms</text>
${burst.refreshes.map((span) => html`${bar(span, 'tint', 28, height - 28)}${bar(span, 'token-1', 18, 10)}`)}
${burst.rows.map(row)}
</svg>
<p class="legend">${key('repeated', 'Rejected, then repeated')}${key('waiting', 'Waits for the refresh', 3)}${key('soft', 'Succeeded')}</p>
<p><b>${burstSentence(burst)}</b></p>`;
}
