import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { isRecord } from './checks.js';
import type { Clients, EmulatorUser } from './directory.js';
import type { Bearer, Grants } from './grants.js';
import { addressedOrganization } from './hosts.js';
import {
  apiRefusal,
  type IncomingRequest,
  json,
  lowerCased,
  parseBody,
  type Query,
  type Reply,
  single,
  verbatim,
} from './messages.js';
import type { Profile } from './profiles.js';

/** A request as a route's handler receives it. */
export interface ApiRequest {
  /** The user on whose behalf the request is made. */
  readonly user: EmulatorUser;
  /** The scopes that this user approved. */
  readonly scopes: readonly string[];
  /** The organization domain in the host; `undefined` on the plain host. */
  readonly organization: string | undefined;
  /** The values of `:name` in the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, text if it is textual, else bytes; `undefined` if there is no body. */
  readonly body: unknown;
  /** The body as sent, of any type. */
  readonly bytes: Uint8Array;
  /** Parses the body of an upload: `multipart/form-data`, or a form. Rejects for any other type. */
  readonly formData: () => Promise<FormData>;
}

/** A resource that a test adds to the API. */
export interface EmulatorRoute {
  /** In capitals. A route for GET also serves HEAD. */
  readonly method: string;
  /** Below `/api/v2`, such as `/projects/:projectId/files`. */
  readonly path: string;
  /**
   * Returns the body of a 200 (bytes or JSON), nothing for a 204, or an object of `status` and optionally `headers` and `body`, without
   * any other key. There, bytes are sent unchanged, and text as HTML or plain text. An error that it throws becomes a 500.
   */
  readonly handler: (request: ApiRequest) => unknown;
}

/** The route of a request, and the parameters in its path. */
export interface RouteMatch {
  readonly route: EmulatorRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** The routes of the API. The first one that fits a request serves it. */
export class ApiRoutes {
  readonly #routes: readonly (EmulatorRoute & ReturnType<typeof compilePath>)[];

  /** @param routes - Come before the built-in ones, which service.md names (section 4.4) without their payload. */
  constructor(routes: readonly EmulatorRoute[]) {
    const all: readonly EmulatorRoute[] = [
      ...routes,
      { method: 'GET', path: '/projects', handler: projects },
      { method: 'GET', path: '/user', handler: user },
    ];
    this.#routes = all.map((route) => ({ ...route, ...compilePath(route.path) }));
  }

  /**
   * Finds the route of a request.
   *
   * @param path - Below the path of the API, as sent.
   * @returns The match, or the methods that this path supports: an empty list if there is no such path.
   */
  find(method: string, path: string): RouteMatch | readonly string[] {
    const methods = new Set<string>();
    for (const route of this.#routes) {
      const values = route.pattern.exec(path)?.slice(1);
      if (values === undefined) continue;
      const params = Object.fromEntries(route.names.map((name, index) => [name, decodeSegment(values[index] ?? '')]));
      if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params };
      methods.add(route.method);
    }
    return [...methods];
  }
}

/** Converts the result of a handler into a response. */
export function replyOf(result: unknown): Reply {
  if (result === undefined) return json(204, undefined);
  if (result instanceof Uint8Array) return verbatim(200, result);
  if (!isFullResponse(result)) return json(200, result);
  const headers = lowerCased(result.headers ?? {});
  return typeof result.body === 'string' || result.body instanceof Uint8Array
    ? verbatim(result.status, result.body, headers)
    : json(result.status, result.body, headers);
}

interface FullResponse {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: unknown;
}

function isFullResponse(result: unknown): result is FullResponse {
  if (!isRecord(result) || typeof result.status !== 'number') return false;
  return Object.keys(result).every((key) => key === 'status' || key === 'headers' || key === 'body');
}

/** Compiles a path. `:name` stands for a segment; `{name}`, as in OpenAPI, for a part of one too. */
function compilePath(path: string): { readonly pattern: RegExp; readonly names: readonly string[] } {
  const names: string[] = [];
  const parts = path.split(/((?<=\/):[^/]+|\{[^}]+\})/).map((part) => {
    const name = /^:(.+)$|^\{(.+)\}$/.exec(part);
    if (name === null) return part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    names.push(name[1] ?? name[2] ?? '');
    return '([^/]+?)';
  });
  return { pattern: new RegExp(`^${parts.join('')}$`), names };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function projects({ user: { projects: all = [] }, query }: ApiRequest): unknown {
  const page = (name: string, usual: number, min: number, max: number) => {
    const given = single(query, name) ?? String(usual);
    const number = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  };
  const limit = page('limit', 25, 1, 500);
  const offset = page('offset', 0, 0, Number.MAX_SAFE_INTEGER);
  if (limit === undefined || offset === undefined) {
    return apiRefusal(400, 'limit must be from 1 to 500, and offset 0 or more.');
  }
  const data = all.slice(offset, offset + limit).map((project) => ({ data: project }));
  return { data, pagination: { offset, limit } };
}

function user({ user: { id, name, domain } }: ApiRequest): unknown {
  return { data: { id, fullName: name, organization: domain ?? null } };
}

/** Limits of the API, which a control can change. */
export interface Limits {
  /** Most requests of one account at once; `undefined` sets no limit. */
  concurrency: number | undefined;
}

/** Dependencies of the API. */
export interface ApiSetting {
  readonly grants: Grants;
  readonly routes: ApiRoutes;
  readonly limits: Limits;
  readonly allowRemote: boolean;
  /** Returns the applications that the host of a request knows. */
  readonly clientsAt: (incoming: IncomingRequest) => Clients;
  readonly profile: Pick<Profile, 'apiPath' | 'plainHostForOrganizations' | 'accessTokenHeader'>;
}

/** An admitted request. It counts against the concurrency of its account until it is released. */
export interface Admission {
  readonly serve: () => Promise<Reply>;
  readonly release: () => void;
}

/**
 * The API, on the plain host and on the hosts of enterprise organizations.
 *
 * @see service.md section 4.4
 */
export class Api {
  readonly #setting: ApiSetting;
  readonly #running = new Map<string, number>();

  constructor(setting: ApiSetting) {
    this.#setting = setting;
  }

  /** Admits a request, or returns the 429 for an account with too many requests at once. */
  admit(incoming: IncomingRequest): Admission | Reply {
    const bearer = this.#authenticate(incoming);
    if ('status' in bearer) return { serve: async () => bearer, release: () => {} };
    const { concurrency = Number.POSITIVE_INFINITY } = this.#setting.limits;
    const { id } = bearer.user;
    const running = this.#running.get(id) ?? 0;
    if (running >= concurrency) {
      return apiRefusal(429, 'This account has too many concurrent requests.', { 'retry-after': '1' });
    }
    this.#running.set(id, running + 1);
    const release = () => {
      const left = (this.#running.get(id) ?? 1) - 1;
      if (left > 0) this.#running.set(id, left);
      else this.#running.delete(id);
    };
    return { serve: () => this.#serve(incoming, bearer), release };
  }

  #authenticate(incoming: IncomingRequest): Exclude<Bearer, { readonly refusal: string }> | Reply {
    const { grants, clientsAt, profile } = this.#setting;
    const token = accessToken(incoming.headers, profile.accessTokenHeader);
    if (token === undefined) {
      const header = profile.accessTokenHeader ?? 'Authorization: Bearer <access token>';
      return apiRefusal(401, `The header ${header} is missing.`, { 'www-authenticate': 'Bearer realm="api"' });
    }
    const bearer = grants.bearer(token, clientsAt(incoming));
    if (!('refusal' in bearer)) return bearer;
    const challenge = `Bearer realm="api", error="invalid_token", error_description="${bearer.refusal}"`;
    return apiRefusal(401, bearer.refusal, { 'www-authenticate': challenge });
  }

  async #serve(incoming: IncomingRequest, bearer: Exclude<Bearer, { readonly refusal: string }>): Promise<Reply> {
    const { method, query, headers, bytes = Buffer.alloc(0) } = incoming;
    const { profile, routes } = this.#setting;
    const { organization, path } = addressedOrganization(incoming, this.#setting);
    const refusal = organizationRefusal(organization, bearer.user.domain, profile.plainHostForOrganizations);
    if (refusal !== undefined) return apiRefusal(403, refusal);
    if (query === undefined) return apiRefusal(400, 'The percent-encoding of the query is invalid.');
    const below = path.startsWith(`${profile.apiPath}/`) ? path.slice(profile.apiPath.length) : undefined;
    const found = below === undefined ? [] : routes.find(method, below);
    if (!('route' in found)) {
      if (found.length === 0) return apiRefusal(404, 'Nothing exists at this path.');
      const allow = found.join(', ');
      return apiRefusal(405, `Only ${allow} is supported here.`, { allow });
    }
    const type = { 'content-type': headers['content-type'] ?? '' };
    const formData = () => new Response(new Uint8Array(bytes), { headers: type }).formData();
    const { params, route } = found;
    const body = parseBody(incoming);
    return replyOf(await route.handler({ ...bearer, organization, params, query, headers, body, bytes, formData }));
  }
}

function accessToken(headers: IncomingHttpHeaders, header: string | undefined): string | undefined {
  if (header === undefined) return /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const value = headers[header.toLowerCase()];
  return typeof value === 'string' ? value : undefined;
}

// service.md does not say if a member of an organization may use the plain host, so that is an option. Only an organization's own host is
// known to be for its members (section 4.4).
function organizationRefusal(
  addressed: string | undefined,
  domain: string | undefined,
  plainHostForOrganizations: boolean,
): string | undefined {
  if (addressed !== undefined) {
    return addressed === domain ? undefined : 'The access token belongs to no member of this organization.';
  }
  if (domain === undefined || plainHostForOrganizations) return undefined;
  return `The access token belongs to a member of the organization ${domain}, which has its own host. Is enterpriseBaseUrl set?`;
}
