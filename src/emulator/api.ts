import { type ApiRoutes, replyOf } from './api-routes.js';
import type { Bearer, Grants } from './grants.js';
import { type IncomingRequest, parseBody } from './incoming-request.js';
import { methodNotAllowed, type Reply, refusal } from './reply.js';

/** Dependencies of the API. */
export interface ApiSetting {
  readonly grants: Grants;
  readonly routes: ApiRoutes;
  /** Most requests of one account at once; `undefined` sets no limit. */
  readonly concurrency: number | undefined;
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
    const { concurrency = Number.POSITIVE_INFINITY } = this.#setting;
    const { id } = bearer.user;
    const running = this.#running.get(id) ?? 0;
    if (running >= concurrency) {
      const description = 'This account has as many requests at once as it may have.';
      return refusal(429, 'too_many_requests', description, { 'retry-after': '1' });
    }
    this.#running.set(id, running + 1);
    return { serve: () => this.#serve(incoming, bearer), release: () => this.#release(id) };
  }

  #release(userId: string): void {
    const left = (this.#running.get(userId) ?? 1) - 1;
    if (left > 0) this.#running.set(userId, left);
    else this.#running.delete(userId);
  }

  #authenticate({ headers }: IncomingRequest): Exclude<Bearer, { readonly refusal: string }> | Reply {
    const [, token] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    if (token === undefined) {
      const description = 'The header Authorization: Bearer <access token> is missing.';
      return refusal(401, 'invalid_token', description, { 'www-authenticate': 'Bearer realm="api"' });
    }
    const bearer = this.#setting.grants.bearer(token);
    if (!('refusal' in bearer)) return bearer;
    const challenge = `Bearer realm="api", error="invalid_token", error_description="${bearer.refusal}"`;
    return refusal(401, 'invalid_token', bearer.refusal, { 'www-authenticate': challenge });
  }

  async #serve(incoming: IncomingRequest, bearer: Exclude<Bearer, { readonly refusal: string }>): Promise<Reply> {
    const { method, path, query, headers, organization } = incoming;
    // service.md does not say if a member of an organization may use the plain host, so that is allowed. Only an organization's own host
    // is known to be for its members (section 4.4).
    if (organization !== undefined && organization !== bearer.user.domain) {
      return refusal(403, 'access_denied', 'The access token belongs to no member of this organization.');
    }
    if (query === undefined) {
      return refusal(400, 'invalid_request', 'The percent-encoding of the query is invalid.');
    }
    const found = this.#setting.routes.find(method, path.replace(/^\/api\/v2(?=\/)/, ''));
    if (!('route' in found)) {
      return found.length > 0
        ? methodNotAllowed(found.join(', '))
        : refusal(404, 'not_found', 'There is nothing at this path.');
    }
    const { params, route } = found;
    return replyOf(await route.handler({ ...bearer, organization, params, query, headers, body: parseBody(incoming) }));
  }
}
