import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { isRecord, record, refuse, text } from './checks.js';
import type { Query } from './query.js';
import { json, lowerCased, type Reply, verbatim } from './reply.js';
import type { EmulatorUser } from './users.js';

/** What a route's handler is told of the request. */
export interface ApiRequest {
  /** On whose behalf the request is made. */
  readonly user: EmulatorUser;
  /** The scopes that this user approved. */
  readonly scopes: readonly string[];
  /** The organization domain that the host named; `undefined` on the plain host. */
  readonly organization: string | undefined;
  /** What stood in the path for `:name`, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, else its text; `undefined` if there was none. */
  readonly body: unknown;
}

/** A resource of the API that a test adds. */
export interface EmulatorRoute {
  /** In capitals. A route for GET answers HEAD too. */
  readonly method: string;
  /** Below `/api/v2`, such as `/projects/:projectId/files`. */
  readonly path: string;
  /**
   * Returns the body of a 200, nothing for a 204, or an object of `status` and, if wanted, `headers` and `body`, and no other key;
   * there a text is sent as HTML or plain text.
   * What it throws is answered with 500.
   */
  readonly handler: (request: ApiRequest) => unknown;
}

/** A route that fits a request, and what its path holds. */
export interface RouteMatch {
  readonly route: EmulatorRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** The routes of the API; of several that fit, the first one answers. */
export class ApiRoutes {
  readonly #routes: readonly (EmulatorRoute & { readonly segments: readonly string[] })[];

  constructor(routes: readonly EmulatorRoute[]) {
    this.#routes = routes.map((route) => ({ ...route, segments: route.path.split('/') }));
  }

  /**
   * @param path - Below `/api/v2`, as sent.
   * @returns The match, or the methods that this path has: none if there is no such path.
   */
  find(method: string, path: string): RouteMatch | readonly string[] {
    const segments = path.split('/');
    const methods: string[] = [];
    for (const route of this.#routes) {
      const params = paramsOf(route.segments, segments);
      if (params === undefined) continue;
      if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params };
      methods.push(route.method);
    }
    return [...new Set(methods)];
  }
}

/** @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the route is malformed. */
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

function isHandler(value: unknown): value is EmulatorRoute['handler'] {
  return typeof value === 'function';
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (!expected.startsWith(':')) {
      if (expected !== segment) return undefined;
    } else if (segment === '') return undefined;
    else params[expected.slice(1)] = decoded(segment);
  }
  return params;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The answer that a handler's result stands for. */
export function replyOf(result: unknown): Reply {
  if (result === undefined) return json(204, undefined);
  if (!isFullAnswer(result)) return json(200, result);
  const headers = lowerCased(result.headers ?? {});
  return typeof result.body === 'string'
    ? verbatim(result.status, result.body, headers)
    : json(result.status, result.body, headers);
}

interface FullAnswer {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: unknown;
}

function isFullAnswer(result: unknown): result is FullAnswer {
  if (!isRecord(result) || typeof result.status !== 'number') return false;
  return Object.keys(result).every((key) => key === 'status' || key === 'headers' || key === 'body');
}
