import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { parseCookie } from 'cookie';
import { forwardedPrefix, hostOf, isSecure } from './request-origin.js';
import { originalUrl, pathOf, queryOf } from './request-url.js';

/** The cookies of a request by name, decoded; of several with one name the first. */
export type Cookies = Readonly<Record<string, string | undefined>>;

/**
 * A request, read once: each part when a rule first needs it.
 *
 * Session and user are not among the parts, since Passport replaces both during a login: see `sessionOf` and `userOf`.
 */
export class Visit {
  readonly req: IncomingMessage;
  #url: string | undefined;
  #path: string | undefined;
  #browserUrl: string | undefined;
  #query: URLSearchParams | undefined;
  #cookies: Cookies | undefined;
  #isSecure: boolean | undefined;

  constructor(req: IncomingMessage) {
    this.req = req;
  }

  get headers(): IncomingHttpHeaders {
    return this.req.headers;
  }

  /** Path and query as the browser requested them, wherever the handler is mounted. */
  get url(): string {
    this.#url ??= originalUrl(this.req);
    return this.#url;
  }

  /** The path of {@link url}. */
  get path(): string {
    this.#path ??= pathOf(this.url);
    return this.#path;
  }

  /** Path and query as the browser has them in its address bar: with the prefix that a trusted proxy has stripped. */
  get browserUrl(): string {
    this.#browserUrl ??= forwardedPrefix(this.req) + this.url;
    return this.#browserUrl;
  }

  get query(): URLSearchParams {
    this.#query ??= queryOf(this.url);
    return this.#query;
  }

  /** The header `Cookie`: rules look for a name in it before they have it parsed. */
  get cookieHeader(): string {
    return this.req.headers.cookie ?? '';
  }

  get cookies(): Cookies {
    this.#cookies ??= parseCookie(this.cookieHeader);
    return this.#cookies;
  }

  /** Returns a cookie's value. The header is not parsed for a name that is not in it. */
  cookie(name: string): string | undefined {
    return this.cookieHeader.includes(name) ? this.cookies[name] : undefined;
  }

  /** True if the browser's connection is encrypted, as far as Express' `trust proxy` setting shows. */
  get isSecure(): boolean {
    this.#isSecure ??= isSecure(this.req);
    return this.#isSecure;
  }

  /** Host name and port that the browser requested, if the request names well-formed ones. */
  get host(): string | undefined {
    return hostOf(this.req);
  }
}
