import type { LogEntry, ServiceRequest } from 'passport-oauth-app/emulator';
import type { Cause, Happening } from './happening.js';
import type { SeenRequest } from './journal.js';
import { shortened, shortenedFields } from './shortened.js';
import { claimsOf } from './token-state.js';

interface Seen {
  readonly request: ServiceRequest;
  readonly outcome: string;
}

const most = 200;

/** The requests that reached the emulated service, until somebody can tell on whose account they were. */
export class ServiceLog {
  #open: readonly Seen[] = [];
  readonly #known = new WeakSet<ServiceRequest>();

  /** Notes the outcome of the oldest request that it fits. The service calls this before it answers. */
  note({ method, host, path, outcome }: LogEntry, requests: readonly ServiceRequest[]): void {
    const request = requests.find(
      (one) => !this.#known.has(one) && one.method === method && one.path === path && (one.headers.host ?? '') === host,
    );
    if (!request) return;
    this.#known.add(request);
    this.#open = [...this.#open.slice(1 - most), { request, outcome: String(outcome) }];
  }

  /** Hands out the requests that belong to what happened, and only once. */
  claim(happening: Happening): readonly SeenRequest[] {
    const claimed = this.#open.filter(belongsTo(happening)).slice(-limitOf(happening));
    this.#open = this.#open.filter((seen) => !claimed.includes(seen));
    return claimed.map(shown);
  }
}

function belongsTo({ kind, event, cause }: Happening): (seen: Seen) => boolean {
  switch (kind) {
    case 'login':
      return ({ request }) => isGrant(request, 'authorization_code') || isVisit(request, cause);
    case 'refresh':
      return ({ request }) => event.outcome !== 'adopted' && isGrant(request, 'refresh_token');
    case 'api':
      return ({ request }) => request.path === `/api/v2${event.path}` && isOf(request, cause?.userId);
    case 'grant-lost':
      return () => false;
  }
}

/** A refresh is one request, a login the three of the way there, an API call as many as it took. */
function limitOf({ kind, event }: Happening): number {
  if (kind === 'api') return Math.max(1, event.attempts);
  return kind === 'refresh' ? 1 : 3;
}

function isGrant({ path, body }: ServiceRequest, grantType: string): boolean {
  return path === '/oauth/token' && isRecord(body) && body.grant_type === grantType;
}

/** Whether it is the visit to the consent page that this callback came from. */
function isVisit({ path, query, body }: ServiceRequest, cause: Cause | undefined): boolean {
  if (path !== '/oauth/authorize' || cause?.state === undefined) return false;
  return (
    query.state === cause.state || (typeof body === 'string' && new URLSearchParams(body).get('state') === cause.state)
  );
}

function isOf({ headers }: ServiceRequest, userId: string | undefined): boolean {
  const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
  return userId !== undefined && claimsOf(token).sub === userId;
}

function shown({ request, outcome }: Seen): SeenRequest {
  const { method, path, headers } = request;
  return { method, host: headers.host ?? '', path, outcome, detail: detailOf(request) };
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
