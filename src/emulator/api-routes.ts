import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { isRecord, record, refuse, text } from './checks.js';
import { type Query, single } from './incoming-request.js';
import { json, lowerCased, type Reply, refusal, verbatim } from './reply.js';
import type { EmulatorUser } from './users.js';

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
  /** Parsed if it is JSON, else its text; `undefined` if there is no body. */
  readonly body: unknown;
}

/** A resource that a test adds to the API. */
export interface EmulatorRoute {
  /** In capitals. A route for GET also serves HEAD. */
  readonly method: string;
  /** Below `/api/v2`, such as `/projects/:projectId/files`. */
  readonly path: string;
  /**
   * Returns the body of a 200, nothing for a 204, or an object of `status` and optionally `headers` and `body`, without any other key.
   * There, text is sent as HTML or plain text. An error that it throws becomes a 500.
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
  readonly #routes: readonly (EmulatorRoute & { readonly segments: readonly string[] })[];

  /** @param routes - Come before the built-in ones, which service.md names (section 4.4) without their payload. */
  constructor(routes: readonly EmulatorRoute[]) {
    const all: readonly EmulatorRoute[] = [
      ...routes,
      { method: 'GET', path: '/projects', handler: projects },
      { method: 'GET', path: '/user', handler: user },
    ];
    this.#routes = all.map((route) => ({ ...route, segments: route.path.split('/') }));
  }

  /**
   * Finds the route of a request.
   *
   * @param path - Below `/api/v2`, as sent.
   * @returns The match, or the methods that this path supports: an empty list if there is no such path.
   */
  find(method: string, path: string): RouteMatch | readonly string[] {
    const segments = path.split('/');
    const methods = new Set<string>();
    for (const route of this.#routes) {
      const params = matchSegments(route.segments, segments);
      if (params === undefined) continue;
      if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params };
      methods.add(route.method);
    }
    return [...methods];
  }
}

/**
 * Returns the value as a route.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is malformed.
 */
export function checkedRoute(value: unknown, option: string): EmulatorRoute {
  const route = record(option, value, ['method', 'path', 'handler']);
  const method = text(`${option}.method`, route.method);
  const path = text(`${option}.path`, route.path);
  const { handler } = route;
  if (!/^[A-Z]+$/.test(method)) refuse(`${option}.method`, 'an HTTP method in capitals', method);
  if (!path.startsWith('/') || /^\/api\/|[?#\s]/.test(path)) {
    refuse(`${option}.path`, 'a path below /api/v2, such as /projects/:projectId', path);
  }
  if (!isHandler(handler)) refuse(`${option}.handler`, 'a function', handler);
  return { method, path, handler };
}

/** Converts the result of a handler into a response. */
export function replyOf(result: unknown): Reply {
  if (result === undefined) return json(204, undefined);
  if (!isFullResponse(result)) return json(200, result);
  const headers = lowerCased(result.headers ?? {});
  return typeof result.body === 'string'
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

function isHandler(value: unknown): value is EmulatorRoute['handler'] {
  return typeof value === 'function';
}

function matchSegments(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (!expected.startsWith(':')) {
      if (expected !== segment) return undefined;
    } else if (segment === '') return undefined;
    else params[expected.slice(1)] = decodeSegment(segment);
  }
  return params;
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
    return refusal(400, 'invalid_request', 'limit must be from 1 to 500, and offset 0 or more.');
  }
  const data = all.slice(offset, offset + limit).map((project) => ({ data: project }));
  return { data, pagination: { offset, limit } };
}

function user({ user: { id, name, domain } }: ApiRequest): unknown {
  return { data: { id, fullName: name, organization: domain ?? null } };
}
