import { decodeJwt, type JWTPayload } from 'jose';
import type { LogEntry, ServiceRequest } from 'passport-oauth-app/emulator';
import type { Entry, Happening, SeenRequest } from './journal.js';

type Fields = Readonly<Record<string, unknown>>;

const secrets = new Set(['client_secret', 'code', 'code_verifier', 'refresh_token', 'access_token', 'state']);

/** Makes journal entries of events: adds the requests that the emulated service received. One for all processes. */
export class Recorder {
  /** What came of each request; nothing once an event has claimed it. */
  readonly #seen = new WeakMap<ServiceRequest, SeenRequest | undefined>();

  /** Notes the outcome of the oldest request that matches. The service calls this before it answers. */
  note({ method, host, path, outcome, durationMs }: LogEntry, at: number, requests: readonly ServiceRequest[]): void {
    const request = requests.find(
      (one) => !this.#seen.has(one) && one.method === method && one.path === path && (one.headers.host ?? '') === host,
    );
    const seen = { method, host, path, outcome: String(outcome), at, durationMs };
    if (request) this.#seen.set(request, { ...seen, detail: detailOf(request) });
  }

  /** Returns the entry; `undefined` for an event without a grant, such as a declined login. */
  record(happening: Happening, received: readonly ServiceRequest[]): Entry | undefined {
    const { kind, event } = happening;
    // A login takes three requests, a refresh one, an API call one for each attempt.
    const most = kind === 'api' ? Math.max(1, event.attempts) : kind === 'refresh' ? 1 : 3;
    const own = received.filter((one) => this.#seen.get(one) && belongs(one, happening)).slice(-most);
    const requests = own.flatMap((one) => this.#seen.get(one) ?? []);
    for (const one of own) this.#seen.set(one, undefined);
    return event.grantId === undefined ? undefined : { ...happening, grantId: event.grantId, requests };
  }
}

function belongs(request: ServiceRequest, { kind, event, cause }: Happening): boolean {
  const { grant_type, state } = fieldsOf(request);
  if (kind === 'login')
    return grant_type === 'authorization_code' || (request.path === '/oauth/authorize' && state === cause?.state);
  if (kind === 'refresh') return event.outcome !== 'adopted' && grant_type === 'refresh_token';
  if (kind !== 'api' || request.path !== `/api/v2${event.path}`) return false;
  const call = cause?.call && `${cause.call.burst}.${cause.call.number}`;
  if (call !== undefined || request.headers['x-call'] !== undefined) return request.headers['x-call'] === call;
  return cause?.userId !== undefined && claimsOf(bearerOf(request)).sub === cause.userId;
}

/** Returns the fields of a request's query and body. */
export function fieldsOf({ query, body }: ServiceRequest): Fields {
  const form = typeof body === 'string' ? Object.fromEntries(new URLSearchParams(body)) : body;
  return { ...query, ...(typeof form === 'object' ? form : {}) };
}

/** Returns the bearer token or the fields of a request, shortened. */
export function detailOf(request: ServiceRequest): string {
  const bearer = bearerOf(request);
  return bearer ? `Authorization: Bearer ${shortened(bearer)}` : shortenedFields(fieldsOf(request));
}

/** Returns the bearer token of a request, or nothing. */
export function bearerOf({ headers }: ServiceRequest): string {
  return headers.authorization?.replace(/^Bearer /, '') ?? '';
}

/** Returns the beginning of a secret and, if it is long, its end: enough to tell two secrets apart. */
function shortened(secret: string): string {
  return `${secret.slice(0, 4)}…${secret.length >= 32 ? secret.slice(-4) : ''}`;
}

/** Returns the fields of a query or body as text, with secrets shortened. */
export function shortenedFields(fields: Fields, separator = ' '): string {
  const pairs = Object.entries(fields);
  return pairs.map(([name, value]) => `${name}=${secrets.has(name) ? shortened(`${value}`) : value}`).join(separator);
}

/** Returns the claims of a JWT without checking its signature: good enough to show them, and for nothing else. */
export function claimsOf(jwt: string): JWTPayload {
  try {
    return decodeJwt(jwt);
  } catch {
    // Opaque.
    return {};
  }
}
