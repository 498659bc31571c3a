import type { RefreshEvent } from 'passport-oauth-app';
import { bringsToken, type Entry, type Story, startOf } from './journal.js';
import { reasonWords } from './words.js';

/** A stretch of time, in epoch milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The time in which one access token was in use. */
export interface TokenSpan extends Span {
  /** 1 for the token of the login. */
  readonly number: number;
}

/** A request to the token endpoint or the API. */
export interface RequestSpan extends Span {
  readonly good: boolean;
  /** The token that a good request to the token endpoint brought. */
  readonly token?: number;
  readonly title: string;
}

/** The last seconds of a grant. */
export interface Timeline extends Span {
  readonly tokens: readonly TokenSpan[];
  /** From a failed refresh to the next good one. */
  readonly outages: readonly Span[];
  readonly tokenRequests: readonly RequestSpan[];
  readonly apiCalls: readonly RequestSpan[];
  /** True if a token is in use at the end. */
  readonly hasToken: boolean;
}

/** The usual length of a timeline, and that of one right after an incident, in milliseconds. */
const usualMs = 100_000;
const zoomedMs = 20_000;

/**
 * Returns what happened to a grant in the 100 seconds before `now`, or in the 20 seconds before it if they show the
 * latest incident.
 *
 * @param incidentAt Epoch milliseconds.
 */
export function timelineOf(
  { entries, refreshes }: Story,
  now: number,
  incidentAt = Number.NEGATIVE_INFINITY,
): Timeline {
  const window = { from: now - (now - incidentAt < zoomedMs ? zoomedMs : usualMs), to: now };
  const inWindow = <T extends Span>(spans: readonly T[]) =>
    spans
      .filter(({ from, to }) => to > window.from && from <= window.to)
      .map((span) => ({ ...span, from: Math.max(span.from, window.from), to: Math.min(span.to, window.to) }));
  const brought = entries.filter(bringsToken);
  const numberOf = (entry: Entry) => refreshes + 2 - brought.length + brought.indexOf(entry);
  const tokens = tokenSpans(entries, numberOf, window);
  return {
    ...window,
    tokens: inWindow(tokens),
    outages: inWindow(outageSpans(entries, now)),
    tokenRequests: inWindow(entries.flatMap((entry) => tokenRequest(entry, numberOf))),
    apiCalls: inWindow(entries.flatMap(apiCall)),
    hasToken: tokens.at(-1)?.to === now,
  };
}

/** A token is in use from the end of the request that brought it until the next one, or until it can be used no more. */
function tokenSpans(entries: readonly Entry[], numberOf: (entry: Entry) => number, { from, to }: Span): TokenSpan[] {
  const spans: TokenSpan[] = [];
  const first = entries.find(bringsToken);
  // With a token that lives for hours, the journal no longer has the entry that brought it.
  let current = { from, number: first ? numberOf(first) - 1 : 1 };
  let inUse = current.number > 0;
  for (const entry of entries) {
    const isNew = bringsToken(entry);
    const ended = entry.kind === 'grant-lost' || (entry.kind === 'refresh' && endsToken(entry.event));
    if (inUse && (isNew || ended)) spans.push({ ...current, to: ended ? startOf(entry) : entry.at });
    const adopted = entry.kind === 'refresh' && entry.event.outcome === 'adopted';
    if (isNew) current = { from: entry.at, number: numberOf(entry) };
    else if (adopted && !inUse) current = { ...current, from: entry.at };
    inUse = isNew || adopted || (inUse && !ended);
  }
  return inUse ? [...spans, { ...current, to }] : spans;
}

/** Returns whether the token before could not be used any more, so that requests waited. */
function endsToken({ trigger, outcome }: RefreshEvent): boolean {
  return trigger !== 'ahead' && outcome !== 'adopted' && outcome !== 'saved';
}

function outageSpans(entries: readonly Entry[], now: number): Span[] {
  const spans: Span[] = [];
  let from: number | undefined;
  for (const entry of entries) {
    if (entry.kind !== 'refresh' && entry.kind !== 'grant-lost') continue;
    const failed = entry.kind === 'refresh' && entry.event.outcome === 'failed';
    if (failed && entry.event.reason !== 'ERR_NOT_AUTHORIZED') from ??= startOf(entry);
    else if (from !== undefined) {
      spans.push({ from, to: entry.at });
      from = undefined;
    }
  }
  return from === undefined ? spans : [...spans, { from, to: now }];
}

function tokenRequest(entry: Entry, numberOf: (entry: Entry) => number): RequestSpan[] {
  const { kind, event, at } = entry;
  if (kind === 'login') return [{ from: startOf(entry), to: at, good: true, token: numberOf(entry), title: 'Login' }];
  if (kind !== 'refresh') return [];
  // None of these took a request.
  if (event.outcome === 'adopted' || event.outcome === 'saved' || event.reason === 'ERR_TOKEN_STORE') return [];
  const span = { from: startOf(entry), to: at };
  if (!bringsToken(entry)) return [{ ...span, good: false, title: reasonWords(event.reason) ?? event.outcome }];
  return [{ ...span, good: true, token: numberOf(entry), title: 'Refresh' }];
}

function apiCall(entry: Entry): RequestSpan[] {
  if (entry.kind !== 'api') return [];
  const { method, path, status, reason } = entry.event;
  return [
    {
      from: startOf(entry),
      to: entry.at,
      good: reason === undefined,
      title: `${method} ${path}: ${status ?? reasonWords(reason)}`,
    },
  ];
}
