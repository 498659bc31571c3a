import type { ServerResponse } from 'node:http';
import { isRecent } from '../clock.js';
import { endCookie, HOST_PREFIX, setCookie } from './browser-cookie.js';
import type { CookieSeal } from './cookie-seal.js';
import type { Visit } from './visit.js';

/** What a sealed cookie is made with. */
export interface SealedCookieOptions {
  /** Without the prefix. */
  readonly name: string;
  readonly seal: CookieSeal;
  readonly maxAgeS: number;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** What the content is bound to, besides the name: it opens for the same text alone. */
  readonly binding?: string | undefined;
}

/**
 * A short-lived cookie of JSON that no browser, and no sibling host, can read or make up. The time is sealed too, so that an
 * old one is as none.
 */
export class SealedCookie<Content extends readonly unknown[]> {
  readonly #options: SealedCookieOptions;

  constructor(options: SealedCookieOptions) {
    this.#options = options;
  }

  /** Returns true if the request has the cookie, as far as a look at its header shows. */
  isIn({ cookieHeader }: Pick<Visit, 'cookieHeader'>): boolean {
    return cookieHeader.includes(this.#options.name);
  }

  /** Returns the content, behind the time at which it was made; `undefined` if the cookie is older than its maximum age. */
  read(visit: Visit): readonly [at: number, ...Content] | undefined {
    if (!this.isIn(visit)) return undefined;
    const { seal, maxAgeS, clock } = this.#options;
    const value = visit.cookie(this.#nameFor(visit));
    const text = value && seal.open(this.#contextFor(visit), value);
    if (!text) return undefined;
    const content = JSON.parse(text) as readonly [number, ...Content];
    return isRecent(content[0], maxAgeS * 1000, clock()) ? content : undefined;
  }

  /** Sets the cookie. Returns false if there is no room for it. @param at When the content was made. Default: now. */
  write(visit: Visit, res: ServerResponse, content: Content, at: number = this.#options.clock()): boolean {
    const { seal, maxAgeS } = this.#options;
    const sealed = seal.seal(this.#contextFor(visit), JSON.stringify([at, ...content]));
    return setCookie(visit, res, this.#nameFor(visit), sealed, maxAgeS);
  }

  /** Ends the cookie, if the browser has it. Returns false if it has none. */
  end(visit: Visit, res: ServerResponse): boolean {
    const name = this.#nameFor(visit);
    if (visit.cookie(name) === undefined) return false;
    endCookie(visit, res, name);
    return true;
  }

  /** A cookie without the prefix may come from a sibling host: with https it is not read. */
  #nameFor({ isSecure }: Visit): string {
    return isSecure ? HOST_PREFIX + this.#options.name : this.#options.name;
  }

  #contextFor(visit: Visit): string {
    return JSON.stringify([this.#nameFor(visit), this.#options.binding ?? '']);
  }
}
