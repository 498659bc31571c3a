import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRecent } from '../clock.js';
import { scopeNames } from '../oauth/scope.js';
import { endCookie, HOST_PREFIX, readCookie, setCookie } from '../session/browser-cookie.js';
import type { CookieSeal } from '../session/cookie-seal.js';
import { isSecure } from '../session/incoming-request.js';

/** How long a login may begin after its page has asked for it, in seconds: an own login page may stand in between. */
const REQUEST_MAX_AGE_S = 10 * 60;

/** How long scopes count as refused, in seconds. A visitor who clicks again is asked again at once. */
const REFUSED_MAX_AGE_S = 60;

/** How often a page may ask without a login that begins for it: its login route leads elsewhere, and would lead here again. */
const MAX_UNANSWERED = 3;

/** What a cookie holds. `at`: epoch milliseconds. `isNext`: the browser's next visit of the page is the callback's redirect, whatever its headers say. */
type Asked = readonly [at: number, scope: string, asked: number];
type Refused = readonly [at: number, scope: string, isNext: boolean];

/**
 * Carries the scopes that a page needs from `requireAuthorization` to the login, and from its callback back to the page.
 *
 * Both are in short-lived sealed cookies: the first in one for each page, bound to the grant, so that tabs do not disturb each
 * other and no link can add scopes; the second tells the page that its scopes have just been refused, which ends a loop.
 */
export class StepUps {
  /** The scopes that each login of the strategy asks for. */
  readonly ownScope: readonly string[];
  readonly #name: string;
  readonly #seal: CookieSeal;
  readonly #clock: () => number;

  /** @param name Of the cookies, without the prefix. @param ownScope The strategy's. @param clock Epoch milliseconds. */
  constructor(name: string, seal: CookieSeal, ownScope: string, clock: () => number) {
    this.#name = name;
    this.#seal = seal;
    this.ownScope = scopeNames(ownScope);
    this.#clock = clock;
  }

  /**
   * Has the next login that leads back to the page ask for these scopes, whichever route begins it.
   *
   * @param grantId Of the request, if it has a grant.
   * @returns false if the page has asked several times and no login has begun for it, or the browser has no room for a cookie
   */
  ask(
    req: IncomingMessage,
    res: ServerResponse,
    page: string,
    scope: readonly string[],
    grantId: string | undefined,
  ): boolean {
    const name = this.#nameFor(req, page);
    const context = contextOf(name, grantId);
    const [, , before = 0] = this.#read<Asked>(req, name, context, REQUEST_MAX_AGE_S) ?? [];
    if (before >= MAX_UNANSWERED) {
      endCookie(req, res, name);
      return false;
    }
    return this.#write(req, res, name, context, [this.#clock(), scope.join(' '), before + 1], REQUEST_MAX_AGE_S);
  }

  /** Returns the scopes that a page has asked for, separated by spaces, and ends its cookie: they are for one login. */
  take(req: IncomingMessage, res: ServerResponse, page: string, grantId: string | undefined): string | undefined {
    const name = this.#nameFor(req, page);
    if (readCookie(req, name) === undefined) return undefined;
    endCookie(req, res, name);
    return this.#read<Asked>(req, name, contextOf(name, grantId), REQUEST_MAX_AGE_S)?.[1];
  }

  /** Notes which scopes of those that a login has asked for were not granted: none, if the list is empty. */
  noteRefused(req: IncomingMessage, res: ServerResponse, scope: readonly string[]): void {
    if (scope.length === 0 && !req.headers.cookie?.includes(this.#name)) return;
    const name = this.#nameFor(req, '');
    // Of a service at the application's own origin, the redirect has the headers of a click in the application. Of a consent
    // page with `Referrer-Policy: no-referrer`, Firefox marks it like an address that the visitor has typed.
    const isNext = ['same-origin', 'none'].includes(String(req.headers['sec-fetch-site']));
    const refused: Refused = [this.#clock(), scope.join(' '), isNext];
    if (scope.length > 0) this.#write(req, res, name, name, refused, REFUSED_MAX_AGE_S);
    else if (readCookie(req, name) !== undefined) endCookie(req, res, name);
  }

  /** Returns true if one of the scopes was refused a moment ago, and the visitor has not asked for the page by a click since. */
  isRefused(req: IncomingMessage, res: ServerResponse, scope: readonly string[]): boolean {
    const name = this.#nameFor(req, '');
    const [at = 0, refused = '', isNext = false] = this.#read<Refused>(req, name, name, REFUSED_MAX_AGE_S) ?? [];
    if (!scopeNames(refused).some((one) => scope.includes(one))) return false;
    if (isNext) {
      this.#write(req, res, name, name, [at, refused, false], REFUSED_MAX_AGE_S);
      return true;
    }
    const { 'sec-fetch-user': user, 'sec-fetch-site': site } = req.headers;
    // A redirect from a service of another origin has `cross-site`, even after a click there.
    return !(user === '?1' && (site === 'same-origin' || site === 'none'));
  }

  /** A cookie without the prefix may come from a sibling host: with https it is not read. */
  #nameFor(req: IncomingMessage, page: string): string {
    const id = page === '' ? 'refused' : createHash('sha256').update(page).digest('base64url').slice(0, 11);
    return `${isSecure(req) ? HOST_PREFIX : ''}${this.#name}.${id}`;
  }

  #write(
    req: IncomingMessage,
    res: ServerResponse,
    name: string,
    context: string,
    content: Asked | Refused,
    maxAgeS: number,
  ): boolean {
    return setCookie(req, res, name, this.#seal.seal(context, JSON.stringify(content)), maxAgeS);
  }

  #read<C extends Asked | Refused>(
    req: IncomingMessage,
    name: string,
    context: string,
    maxAgeS: number,
  ): C | undefined {
    const value = readCookie(req, name);
    const text = value && this.#seal.open(context, value);
    if (!text) return undefined;
    const content = JSON.parse(text) as C;
    return isRecent(content[0], maxAgeS * 1000, this.#clock()) ? content : undefined;
  }
}

/** Binds a cookie to the grant as well: one that was made for another visitor opens nothing. */
function contextOf(name: string, grantId: string | undefined): string {
  return JSON.stringify([name, grantId ?? '']);
}
