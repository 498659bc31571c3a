import type { IncomingMessage } from 'node:http';
import { originalUrl, pathOf } from './visit.js';

/** Most routes that are noted; beyond it the oldest is forgotten. */
const MAX_ROUTES = 1_000;

/** What Express adds to a request. */
interface WithRoute {
  readonly baseUrl?: unknown;
  readonly route?: { readonly path?: unknown } | undefined;
}

/**
 * The routes on which a logout has run in this process, by method and route, and by method and path: their next requests
 * neither start a refresh nor wait for one. Anyone can write a URL that looks like a logout, so words of it decide nothing.
 */
export class LogoutRoutes {
  readonly #keys = new Set<string>();

  /** Notes that a logout runs for a request. */
  add(req: IncomingMessage): void {
    for (const key of [routeKey(req), pathKey(req)]) {
      if (key === undefined) continue;
      this.#keys.delete(key);
      this.#keys.add(key);
    }
    for (const oldest of this.#keys) {
      if (this.#keys.size <= MAX_ROUTES) break;
      this.#keys.delete(oldest);
    }
  }

  /** Returns true if a logout has run on the route of a request, or on its path before its route is known. */
  has(req: IncomingMessage): boolean {
    if (this.#keys.size === 0) return false;
    const route = routeKey(req);
    return (route !== undefined && this.#keys.has(route)) || this.#keys.has(pathKey(req));
  }
}

/** Returns `undefined` before a router of Express has found the route. */
function routeKey({ method, baseUrl = '', route }: IncomingMessage & WithRoute): string | undefined {
  return typeof route?.path === 'string' ? `${method} ${String(baseUrl)} ${route.path}` : undefined;
}

function pathKey(req: IncomingMessage): string {
  return `${req.method} ${pathOf(originalUrl(req))}`;
}
