import { type ApiRoutes, replyOf } from './api-routes.js';
import type { Bearer, Grants } from './grants.js';
import { addressedOrganization } from './hosts.js';
import { type IncomingRequest, parseBody } from './incoming-request.js';
import type { Profile } from './profiles.js';
import { apiRefusal, type Reply } from './reply.js';

/** Dependencies of the API. */
export interface ApiSetting {
  readonly grants: Grants;
  readonly routes: ApiRoutes;
  /** Most requests of one account at once; `undefined` sets no limit. */
  readonly concurrency: number | undefined;
  readonly allowRemote: boolean;
  readonly profile: Pick<Profile, 'apiPath' | 'plainHostForOrganizations'>;
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
      return apiRefusal(429, 'This account has as many requests at once as it may have.', { 'retry-after': '1' });
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
      const message = 'The header Authorization: Bearer <access token> is missing.';
      return apiRefusal(401, message, { 'www-authenticate': 'Bearer realm="api"' });
    }
    const bearer = this.#setting.grants.bearer(token);
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
      if (found.length === 0) return apiRefusal(404, 'There is nothing at this path.');
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
