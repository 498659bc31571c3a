import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parse } from 'cookie';
import type { Secret } from '../redaction.js';
import { cookieToken } from '../request/browser-cookie.js';
import { CookieSeal } from './cookie-seal.js';
import { endedLoginCookie, issuedAt, loginCookieName, loginCookies } from './login-cookie.js';

/** A login between its authorization request and its callback. */
export interface PendingLogin {
  /** The redirect URL of the authorization request. The code exchange repeats it. */
  readonly redirectUri: string;
  /** The path to return to after the login, of this origin. */
  readonly returnTo: string | undefined;
  /** True for `passport.authorize`, which connects an account to the user who is logged in. */
  readonly isConnection: boolean;
  /** Identifies the user who was logged in when the login began: see `userMarkOf`. */
  readonly userMark: string;
  /** Code verifier (RFC 7636, 4.1), with PKCE. */
  readonly codeVerifier: string | undefined;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** What a cookie holds of a login, in this order. */
type Sealed = readonly [
  codeVerifier: string | 0,
  isConnection: 0 | 1,
  returnTo: string | 0,
  userMark?: string | 0,
  redirectUri?: string,
];

/** A login that has just begun. */
export interface BegunLogin {
  /** 256 random bits in base64url. */
  readonly state: string;
  /** S256 of the code verifier (RFC 7636, 4.2), with PKCE. */
  readonly codeChallenge: string | undefined;
  /** Lines of `Set-Cookie`. */
  readonly cookies: readonly string[];
}

/** Whom pending logins belong to. */
export interface PendingLoginsOptions {
  readonly strategyName: string;
  /** Differs for each `authUrl` and `clientID`. */
  readonly service: string;
  /** The strategy's own: most logins have no other redirect URL. */
  readonly callbackURL: string;
  /** Seals the cookies: all processes of the application have it. */
  readonly clientSecret: readonly [Secret, ...Secret[]];
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

const LIFETIME_MS = 10 * 60 * 1000;

/** How far the clock of the host that a login returns to may be behind the clock of the host where it began. */
const CLOCK_SKEW_MS = 60 * 1000;

/**
 * Logins that have begun and not ended yet. Each is in a sealed cookie of its own; the server stores none.
 *
 * The cookie's name is a hash of service and state, and its seal opens for that state, strategy and service alone. So tabs do
 * not disturb each other, a callback in another browser finds nothing, and logins that nobody finishes cost no memory.
 *
 * @see RFC 6749, 10.12; RFC 9700, 4.7; service.md, 5.7
 */
export class PendingLogins {
  readonly #options: PendingLoginsOptions;
  readonly #seal: CookieSeal;
  readonly #token: string;

  constructor(options: PendingLoginsOptions) {
    this.#options = options;
    this.#seal = new CookieSeal('pending login', options.clientSecret);
    this.#token = cookieToken(options.strategyName);
  }

  /**
   * Begins a login. The cookie leaves out a page that it has no room for: that login leads to `/`.
   *
   * @param req For the cookies that the browser has already.
   */
  begin(
    req: IncomingMessage,
    login: Pick<PendingLogin, 'redirectUri' | 'returnTo' | 'isConnection' | 'userMark'>,
    pkce: boolean,
  ): BegunLogin {
    const { redirectUri, returnTo, userMark, isConnection } = login;
    const state = randomBytes(32).toString('base64url');
    const codeVerifier = pkce ? randomBytes(32).toString('base64url') : undefined;
    // Stands before the seal, for the browser's oldest login to be found, and is sealed with it.
    const issued = Math.trunc(this.#options.clock()).toString(36);
    const context = this.#context(state, issued);
    const sealed = (page: string | undefined) => {
      // Short, for the sake of many tabs: the usual redirect URL is a part of the context.
      const isUsual = redirectUri === this.#options.callbackURL;
      const optional: (string | 0)[] = isUsual ? (userMark ? [userMark] : []) : [userMark || 0, redirectUri];
      const content = [codeVerifier ?? 0, isConnection ? 1 : 0, page ?? 0, ...optional];
      return `${issued}.${this.#seal.seal(context, JSON.stringify(content))}`;
    };
    const name = this.#cookieName(state, redirectUri);
    return {
      state,
      codeChallenge: codeVerifier && createHash('sha256').update(codeVerifier).digest('base64url'),
      cookies: loginCookies(req, name, sealed(returnTo), sealed(undefined), LIFETIME_MS),
    };
  }

  /** Returns the login that a state belongs to, if this browser began it within the last ten minutes. */
  find(req: IncomingMessage, state: string): PendingLogin | undefined {
    if (!/^[\w-]{43}$/.test(state)) return undefined;
    const cookies = parse(req.headers.cookie ?? '');
    for (const scheme of ['https:', 'http:']) {
      const [issued = '', sealed] = cookies[this.#cookieName(state, scheme)]?.split('.', 2) ?? [];
      const text = sealed && this.#seal.open(this.#context(state, issued), sealed);
      if (!text) continue;
      const [codeVerifier, isConnection, returnTo, userMark, redirectUri = this.#options.callbackURL] = JSON.parse(
        text,
      ) as Sealed;
      const expiresAt = issuedAt(issued) + LIFETIME_MS;
      if (!redirectUri.toLowerCase().startsWith(scheme) || !this.#isAlive(expiresAt)) continue;
      return {
        redirectUri,
        returnTo: returnTo || undefined,
        isConnection: isConnection === 1,
        userMark: userMark || '',
        codeVerifier: codeVerifier || undefined,
        expiresAt,
      };
    }
    return undefined;
  }

  /** Returns the line of `Set-Cookie` that ends a login in the browser. */
  ended(state: string, { redirectUri }: PendingLogin): string {
    return endedLoginCookie(this.#cookieName(state, redirectUri));
  }

  #isAlive(expiresAt: number): boolean {
    const left = expiresAt - this.#options.clock();
    // Much more than a whole lifetime left: the clock was set back. Clocks of several hosts differ a little.
    return left > 0 && left <= LIFETIME_MS + CLOCK_SKEW_MS;
  }

  #context(state: string, issued: string): string {
    const { strategyName, service, callbackURL } = this.#options;
    return JSON.stringify([strategyName, service, callbackURL, state, issued]);
  }

  #cookieName(state: string, redirectUri: string): string {
    const id = createHash('sha256').update(`${this.#options.service} ${state}`).digest('base64url').slice(0, 16);
    return loginCookieName(this.#token, id, redirectUri);
  }
}
