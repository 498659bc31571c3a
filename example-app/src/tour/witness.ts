import type { Emulator, ServiceRequest } from 'passport-oauth-app/emulator';
import { shortened, shortenedFields } from '../panel/shortened.js';
import type { Report } from './report.js';

const mostShown = 4;

/** Reads at the service what the application has sent. */
export class Witness {
  readonly #service: Emulator;
  readonly #report: Report;
  #seen = 0;

  constructor(service: Emulator, report: Report) {
    this.#service = service;
    this.#report = report;
  }

  /** Returns the requests to the token endpoint and the API since the last call, and prints the first of them. */
  news(): News {
    const requests = this.#service.requests.slice(this.#seen);
    this.#seen = this.#service.requests.length;
    const tokens = requests.filter(({ path }) => path === '/oauth/token');
    const api = requests.filter(({ path }) => path.startsWith('/api/'));
    const all = [...tokens, ...api];
    for (const request of all.slice(0, mostShown)) this.#report.note(shown(request));
    if (all.length > mostShown)
      this.#report.note(`service: and ${all.length - mostShown} more requests like the last one`);
    return { tokens, api };
  }

  /** Checks that a token request is JSON with these fields and no others. */
  checkTokenRequest(request: ServiceRequest | undefined, fields: Readonly<Record<string, string>>): void {
    const { clientID, clientSecret } = this.#service.options;
    const expected = { client_id: clientID, client_secret: clientSecret, ...fields };
    const json = /^application\/json\b/.test(request?.headers['content-type'] ?? '');
    this.#report.check('a POST with a JSON body', request?.method === 'POST' && json);
    this.#report.check(`its fields are exactly ${Object.keys(expected).join(', ')}`, isSame(request?.body, expected));
  }

  /** Returns the bearer token of an API request. */
  bearer(request: ServiceRequest | undefined): string {
    return /^Bearer (\S+)$/.exec(request?.headers.authorization ?? '')?.[1] ?? '';
  }
}

/** The requests that the application has sent. */
export interface News {
  readonly tokens: readonly ServiceRequest[];
  readonly api: readonly ServiceRequest[];
}

/** Returns a field of a JSON body, as text. */
export function field(request: ServiceRequest | undefined, name: string): string {
  const body = request?.body;
  const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined;
  return typeof value === 'string' ? value : '';
}

function isSame(body: unknown, expected: Readonly<Record<string, string>>): boolean {
  if (typeof body !== 'object' || body === null) return false;
  const names = Object.keys(expected);
  return Object.keys(body).length === names.length && names.every((name) => Reflect.get(body, name) === expected[name]);
}

function shown({ method, path, headers, body }: ServiceRequest): string {
  const authorization = headers.authorization ?? '';
  const bearer = authorization ? ` Authorization: Bearer ${shortened(authorization.replace(/^Bearer /, ''))}` : '';
  const fields = typeof body === 'object' && body !== null ? ` ${shortenedFields({ ...body })}` : '';
  return `service: ${method} http://${headers.host}${path}${bearer}${fields}`;
}
