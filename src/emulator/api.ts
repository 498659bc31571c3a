import { type ApiRoutes, replyOf } from './api-routes.js';
import type { Bearer, Grants } from './grants.js';
import type { Incoming } from './incoming-request.js';
import { methodNotAllowed, type Reply, refusal } from './reply.js';
import { bodyOf } from './request-log.js';

/** What the API needs to know of the service. */
export interface ApiSetting {
  readonly grants: Grants;
  readonly routes: ApiRoutes;
  /** Most requests of one account at once; `undefined` sets no limit. */
  readonly concurrency: number | undefined;
}

/** A request that was let in: it takes one of its account's places until it is released. */
export interface Admission {
  readonly serve: () => Promise<Reply>;
  readonly release: () => void;
}

type Speaker = Exclude<Bearer, { readonly refusal: string }>;

/**
 * The API, on the plain host and on those of the enterprise organizations.
 *
 * @see service.md section 4.4
 */
export class Api {
  readonly #setting: ApiSetting;
  readonly #running = new Map<string, number>();

  constructor(setting: ApiSetting) {
    this.#setting = setting;
  }

  /** Lets a request in, or answers at once where its account has too many under way. */
  admit(incoming: Incoming): Admission | Reply {
    const bearer = this.#bearer(incoming);
    if ('status' in bearer) return { serve: async () => bearer, release: () => {} };
    const serve = () => this.#serve(incoming, bearer);
    const { concurrency } = this.#setting;
    if (concurrency === undefined) return { serve, release: () => {} };
    return this.#take(bearer.user.id, concurrency) ? { serve, release: () => this.#give(bearer.user.id) } : tooMany();
  }

  #bearer({ headers }: Incoming): Speaker | Reply {
    const [, token] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    if (token === undefined) {
      return unauthorized('Bearer realm="api"', 'The header Authorization: Bearer <access token> is missing.');
    }
    const bearer = this.#setting.grants.bearer(token);
    if (!('refusal' in bearer)) return bearer;
    return unauthorized(
      `Bearer realm="api", error="invalid_token", error_description="${bearer.refusal}"`,
      bearer.refusal,
    );
  }

  async #serve(incoming: Incoming, { user, scopes }: Speaker): Promise<Reply> {
    const organization = organizationOf(incoming.headers.host);
    // service.md does not say whether a member of an organization may use the plain host, so that is allowed: only an organization's
    // own host is known to be for its members (section 4.4).
    if (organization !== undefined && organization !== user.domain) {
      return refusal(403, 'access_denied', 'The access token belongs to no member of this organization.');
    }
    if (incoming.query === undefined)
      return refusal(400, 'invalid_request', 'The percent-encoding of the query is broken.');
    const found = this.#setting.routes.find(incoming.method, incoming.path.replace(/^\/api\/v2(?=\/)/, ''));
    if (!('route' in found)) return found.length > 0 ? methodNotAllowed(found.join(', ')) : unknownPath();
    const { query, headers } = incoming;
    const request = { user, scopes, organization, params: found.params, query, headers, body: bodyOf(incoming) };
    return replyOf(await found.route.handler(request));
  }

  #take(userId: string, concurrency: number): boolean {
    const running = this.#running.get(userId) ?? 0;
    if (running >= concurrency) return false;
    this.#running.set(userId, running + 1);
    return true;
  }

  #give(userId: string): void {
    const left = (this.#running.get(userId) ?? 1) - 1;
    if (left > 0) this.#running.set(userId, left);
    else this.#running.delete(userId);
  }
}

/**
 * The organization that a host names: what stands before `.api.localhost`.
 *
 * @returns `undefined` on any other host: that is the plain one.
 */
export function organizationOf(host: string | undefined): string | undefined {
  return /^(.+)\.api\.localhost\.?(?::\d+)?$/i.exec(host ?? '')?.[1]?.toLowerCase();
}

/** The answer to a path that nothing is known of. */
export function unknownPath(): Reply {
  return refusal(404, 'not_found', 'There is nothing at this path.');
}

function unauthorized(challenge: string, description: string): Reply {
  return refusal(401, 'invalid_token', description, { 'www-authenticate': challenge });
}

function tooMany(): Reply {
  const description = 'This account has as many requests under way as it may.';
  return refusal(429, 'too_many_requests', description, { 'retry-after': '1' });
}
