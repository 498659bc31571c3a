import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { scopeNames } from '../oauth/token-response.js';
import { SealedCookie } from '../session/cookies.js';
import type { PageScopes, PageScopesOptions } from '../session/return-to.js';
import type { Visit } from '../session/visit.js';

/** How long after a page asks for a login it may begin, in seconds: a login page of the application may come first. */
const REQUEST_MAX_AGE_S = 10 * 60;

/** How long scopes count as refused, in seconds. A visitor who clicks again is asked again at once. */
const REFUSED_MAX_AGE_S = 60;

/** How often a page may ask without a login that begins. Beyond that, its login route leads elsewhere and back here, in a loop. */
const MAX_UNANSWERED = 3;

/** Scopes that a page needs, and how often it has asked for them. */
type Asked = readonly [scope: string, asked: number];

/** Scopes that were not granted. `isOnRedirect`: the browser's next visit of the page is the callback's redirect, whatever its headers say. */
type Refused = readonly [scope: string, isOnRedirect: boolean];

/**
 * Carries scopes in short-lived sealed cookies. Each page has one for the scopes that it needs, bound to the grant: tabs do not
 * disturb each other, and no link can add scopes. Another one holds the scopes that were refused, which ends a loop.
 */
export class ScopeRequests implements PageScopes {
  readonly #options: PageScopesOptions;
  readonly #refused: SealedCookie<Refused>;

  constructor(options: PageScopesOptions) {
    this.#options = options;
    this.#refused = new SealedCookie({ ...options, name: `${options.name}.refused`, maxAgeS: REFUSED_MAX_AGE_S });
  }

  ask(visit: Visit, res: ServerResponse, page: string, scope: readonly string[], grantId: string | undefined): boolean {
    const cookie = this.#cookieOf(page, grantId);
    const [, , asked = 0] = cookie.read(visit) ?? [];
    if (asked < MAX_UNANSWERED) return cookie.write(visit, res, [scope.join(' '), asked + 1]);
    cookie.end(visit, res);
    return false;
  }

  take(visit: Visit, res: ServerResponse, page: string, grantId: string | undefined): string | undefined {
    const cookie = this.#cookieOf(page, grantId);
    return cookie.end(visit, res) ? cookie.read(visit)?.[1] : undefined;
  }

  recordRefused(visit: Visit, res: ServerResponse, scope: readonly string[]): void {
    if (scope.length === 0) {
      this.#refused.end(visit, res);
      return;
    }
    // Of a service at the application's own origin, the redirect has the headers of a click in the application. Of a consent
    // page with `Referrer-Policy: no-referrer`, Firefox marks it like an address that the visitor has typed.
    const isOnRedirect = ['same-origin', 'none'].includes(String(visit.headers['sec-fetch-site']));
    this.#refused.write(visit, res, [scope.join(' '), isOnRedirect]);
  }

  isRefused(visit: Visit, res: ServerResponse, scope: readonly string[]): boolean {
    const [at = 0, refused = '', isOnRedirect = false] = this.#refused.read(visit) ?? [];
    if (!scopeNames(refused).some((one) => scope.includes(one))) return false;
    if (isOnRedirect) {
      this.#refused.write(visit, res, [refused, false], at);
      return true;
    }
    const { 'sec-fetch-user': user, 'sec-fetch-site': site } = visit.headers;
    // A redirect from a service of another origin has `cross-site`, even after a click there.
    return !(user === '?1' && (site === 'same-origin' || site === 'none'));
  }

  /** A cookie that was made for another visitor opens nothing. */
  #cookieOf(page: string, grantId = ''): SealedCookie<Asked> {
    const id = createHash('sha256').update(page).digest('base64url').slice(0, 11);
    const name = `${this.#options.name}.${id}`;
    return new SealedCookie({ ...this.#options, name, binding: grantId, maxAgeS: REQUEST_MAX_AGE_S });
  }
}
