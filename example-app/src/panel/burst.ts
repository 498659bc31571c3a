import type { ApiClient } from 'passport-oauth-app';
import { because } from './happening.js';
import { type Entry, startOf } from './journal.js';
import type { Span } from './timeline.js';
import { reasonWords } from './words.js';

/** One call of a burst: the stretches in which it waited for the API, and in between for the refresh. */
export interface BurstRow extends Span {
  readonly number: number;
  /** The time on the way to the API, one for each attempt. */
  readonly attempts: readonly (Span & { readonly outcome: string })[];
  /** The final status, or why there was none. */
  readonly outcome: string;
  readonly pid: number;
}

/** Calls that were made at once, and the refreshes that they waited for. */
export interface Burst extends Span {
  readonly rows: readonly BurstRow[];
  readonly refreshes: readonly Span[];
  /** The number of calls that a refresh has held up. */
  readonly waited: number;
  readonly lostLogins: number;
}

/** Which calls of which burst are to be made. */
export interface BurstOrder {
  readonly burst: string;
  readonly userId: string | undefined;
  readonly from: number;
  readonly count: number;
}

/** Makes API calls at once. Resolves when all have ended, well or not. */
export async function runBurst(client: ApiClient, { burst, userId, from, count }: BurstOrder): Promise<void> {
  const calls = Array.from({ length: count }, (_, index) => ({ burst, number: from + index }));
  await Promise.allSettled(
    calls.map((call) =>
      because({ userId, call }, () => client.get('/projects', { headers: { 'X-Call': `${burst}.${call.number}` } })),
    ),
  );
}

/** Returns the latest burst among the entries of a grant. */
export function latestBurst(entries: readonly Entry[]): Burst | undefined {
  const burst = entries.findLast(({ cause }) => cause?.call)?.cause?.call?.burst;
  if (burst === undefined) return undefined;
  const calls = entries.filter(({ kind, cause }) => kind === 'api' && cause?.call?.burst === burst);
  const numbers = [...new Set(calls.map(({ cause }) => cause?.call?.number ?? 0))].sort((one, other) => one - other);
  if (numbers.length === 0) return undefined;
  const rows = numbers.map((number) =>
    burstRow(
      number,
      calls.filter(({ cause }) => cause?.call?.number === number),
    ),
  );
  const span = {
    from: Math.min(...rows.map(({ from }) => from)),
    to: Math.max(...rows.map(({ to }) => to)),
  };
  const meanwhile = entries.filter(({ at }) => at >= span.from && at <= span.to);
  const refreshes = meanwhile
    .filter(({ kind, event }) => kind === 'refresh' && event.outcome === 'refreshed')
    .map((entry) => ({ from: startOf(entry), to: entry.at }));
  return {
    ...span,
    rows,
    refreshes,
    waited: rows.filter(({ from, to }) => refreshes.some((refresh) => from <= refresh.to && to >= refresh.to)).length,
    lostLogins: meanwhile.filter(({ kind }) => kind === 'grant-lost').length,
  };
}

function burstRow(number: number, entries: readonly Entry[]): BurstRow {
  const last = entries.at(-1);
  const from = Math.min(...entries.map(startOf));
  const to = Math.max(...entries.map(({ at }) => at));
  const requests = entries.flatMap((entry) => entry.requests);
  const outcome = last?.kind === 'api' ? String(last.event.status ?? reasonWords(last.event.reason)) : '';
  const attempts = requests.map((request, index) => ({
    from: index === 0 ? from : request.at - request.durationMs,
    to: index === requests.length - 1 ? to : request.at,
    outcome: request.outcome,
  }));
  // A real service does not tell when a request arrived.
  return {
    number,
    from,
    to,
    outcome,
    pid: last?.pid ?? 0,
    attempts: attempts.length > 0 ? attempts : [{ from, to, outcome }],
  };
}

/** Returns how often each outcome occurred, such as `12 × 200`. */
export function countedOutcomes(rows: readonly BurstRow[]): readonly string[] {
  const outcomes = [...new Set(rows.map(({ outcome }) => outcome))];
  return outcomes.map((one) => `${rows.filter(({ outcome }) => outcome === one).length} × ${one}`);
}
