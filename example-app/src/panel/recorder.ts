import type { LogEntry, ServiceRequest } from 'passport-oauth-app/emulator';
import type { Cause, Happening } from './happening.js';
import type { Entry, SeenRequest } from './journal.js';
import { shortened, shortenedFields } from './shortened.js';
import { claimsOf } from './token-state.js';

interface Seen {
  readonly request: ServiceRequest;
  readonly outcome: string;
  readonly at: number;
  readonly durationMs: number;
}

const maxOpenRequests = 200;

/**
 * Makes journal entries of events: numbers them and adds the requests that the emulated service received for each.
 * There is one for all processes.
 */
export class Recorder {
  readonly #clock: () => number;
  readonly #known = new WeakSet<ServiceRequest>();
  #open: readonly Seen[] = [];
  #count = 0;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Notes the outcome of the oldest request that matches. The service calls this before it answers. */
  note({ method, host, path, outcome, durationMs }: LogEntry, requests: readonly ServiceRequest[]): void {
    const request = requests.find(
      (one) => !this.#known.has(one) && one.method === method && one.path === path && (one.headers.host ?? '') === host,
    );
    if (!request) return;
    this.#known.add(request);
    const seen = { request, outcome: String(outcome), at: this.#clock(), durationMs };
    this.#open = [...this.#open.slice(1 - maxOpenRequests), seen];
  }

  /** Returns the entry; `undefined` for an event without a grant, such as a declined login. */
  record(happening: Happening): Entry | undefined {
    const claimed = this.#open.filter(belongsTo(happening)).slice(-maxRequestsOf(happening));
    this.#open = this.#open.filter((seen) => !claimed.includes(seen));
    const { grantId } = happening.event;
    if (grantId === undefined) return undefined;
    this.#count += 1;
    return { ...happening, id: this.#count, grantId, requests: claimed.map(seenRequest) };
  }
}

function belongsTo({ kind, event, cause }: Happening): (seen: Seen) => boolean {
  switch (kind) {
    case 'login':
      return ({ request }) => isGrant(request, 'authorization_code') || isVisit(request, cause);
    case 'refresh':
      return ({ request }) => event.outcome !== 'adopted' && isGrant(request, 'refresh_token');
    case 'api':
      return ({ request }) => request.path === `/api/v2${event.path}` && isCallOf(request, cause);
    case 'grant-lost':
      return () => false;
  }
}

/** A login takes three requests, a refresh one, an API call one for each attempt. */
function maxRequestsOf({ kind, event }: Happening): number {
  if (kind === 'api') return Math.max(1, event.attempts);
  return kind === 'refresh' ? 1 : 3;
}

function isGrant({ path, body }: ServiceRequest, grantType: string): boolean {
  return path === '/oauth/token' && isRecord(body) && body.grant_type === grantType;
}

/** Returns whether this is the visit to the consent page that the callback came from. */
function isVisit({ path, query, body }: ServiceRequest, cause: Cause | undefined): boolean {
  if (path !== '/oauth/authorize' || cause?.state === undefined) return false;
  return (
    query.state === cause.state || (typeof body === 'string' && new URLSearchParams(body).get('state') === cause.state)
  );
}

function isCallOf({ headers }: ServiceRequest, cause: Cause | undefined): boolean {
  if (cause?.call) return headers['x-call'] === `${cause.call.burst}.${cause.call.number}`;
  const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
  return headers['x-call'] === undefined && cause?.userId !== undefined && claimsOf(token).sub === cause.userId;
}

function seenRequest({ request, outcome, at, durationMs }: Seen): SeenRequest {
  const { method, path, headers } = request;
  return { method, host: headers.host ?? '', path, outcome, at, durationMs, detail: detailOf(request) };
}

function detailOf({ query, headers, body }: ServiceRequest): string {
  if (headers.authorization) return `Authorization: Bearer ${shortened(headers.authorization.replace(/^Bearer /, ''))}`;
  if (isRecord(body)) return shortenedFields(body);
  if (typeof body === 'string') return shortenedFields(Object.fromEntries(new URLSearchParams(body)));
  return shortenedFields(query);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
