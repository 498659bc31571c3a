import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parse } from 'cookie';
import type { Secret } from '../redaction.js';
import { isFromThisComputer } from '../request/incoming-request.js';
import { CookieSeal } from './cookie-seal.js';
import { UsedStates } from './used-states.js';

/** What a browser carries from the start of a login to its callback. */
export interface PendingLogin {
  /** The redirect URL of the authorization request, to be repeated in the code exchange. */
  readonly redirectUri: string;
  /** Where to go after the login; a path of this origin. */
  readonly returnTo: string | undefined;
  /** With PKCE. */
  readonly codeVerifier: string | undefined;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** A login that has just begun. */
export interface BegunLogin {
  /** 256 random bits in base64url. */
  readonly state: string;
  /** S256 of the code verifier (RFC 7636, 4.2), with PKCE. */
  readonly codeChallenge: string | undefined;
  /** Values of `Set-Cookie`. */
  readonly cookies: readonly string[];
}

type CookieNames = readonly [overTls: string, plain: string];

/** What pending logins are bound to. */
export interface PendingLoginsOptions {
  readonly strategyName: string;
  readonly clientID: string;
  /** Seals the cookies: all processes of the application have it. */
  readonly clientSecret: Secret;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** Browsers take a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
const OVER_TLS = '__Host-';

const LIFETIME_MS = 10 * 60 * 1000;

/** How far the clock of the host that a login comes back to may be behind the clock of the one where it began. */
const CLOCK_SKEW_MS = 60 * 1000;

/** Most logins that one browser can have under way; beyond it the oldest goes. */
const MAX_PENDING = 12;

/** Most cookies that one answer ends: where a neighbour has planted hundreds, many proxies would not let their ends pass. */
const MAX_ENDED = 32;

/** Longest page to go back to. */
const MAX_PAGE = 2048;

/**
 * Most characters that `MAX_PENDING` cookies may take in a browser's `Cookie` header; beyond it pages are left out of
 * new ones. It keeps the header below 8 KB: above it many proxies, and above 16 KB Node itself, would refuse every
 * request of the browser until the cookies end.
 */
const MAX_COOKIE_HEADER = 7_400;

/**
 * Logins that have begun and not ended yet: each in a sealed cookie of its own, none on the server.
 *
 * The cookie's name is made of the state, and its seal opens with the very state, strategy and client alone. So tabs
 * do not get in each other's way, a callback in another browser finds nothing, and a crowd that begins logins and
 * never ends them costs no memory. What was used is remembered until it would have ended anyway.
 *
 * @see RFC 6749, 10.12; RFC 9700, 4.7; service.md, 5.7
 */
export class PendingLogins {
  readonly #options: PendingLoginsOptions;
  readonly #seal: CookieSeal;
  /** How the names of this strategy's cookies begin, and those of no other strategy's. */
  readonly #prefix: string;
  readonly #used = new UsedStates();

  constructor(options: PendingLoginsOptions) {
    this.#options = options;
    this.#seal = new CookieSeal('pending login', options.clientSecret);
    this.#prefix = `${cookieToken(options.strategyName)}.login.`;
  }

  /** Number of states that are remembered as used. */
  get used(): number {
    return this.#used.size;
  }

  /**
   * Begins a login. A page to go back to that there is no room for is left out: the login leads home then.
   *
   * @param req For the pending logins that the browser has already.
   */
  begin(req: IncomingMessage, login: Pick<PendingLogin, 'redirectUri' | 'returnTo'>, pkce: boolean): BegunLogin {
    const now = Math.trunc(this.#options.clock());
    const { kept, surplus } = this.#pendingIn(req);
    const state = randomBytes(32).toString('base64url');
    const codeVerifier = pkce ? randomBytes(32).toString('base64url') : undefined;
    const names = namesFor(login.redirectUri, this.#cookieNames(state), req);
    const bare: PendingLogin = { ...login, returnTo: undefined, codeVerifier, expiresAt: now + LIFETIME_MS };
    const lengths = { kept: kept.join('').length, each: names.length * cookieLength(JSON.stringify(bare)) };
    const left = MAX_PENDING - kept.length / names.length;
    const room = MAX_COOKIE_HEADER - lengths.kept - left * lengths.each;
    const returnTo = hasRoomFor(login.returnTo, room / names.length) ? login.returnTo : undefined;
    const sealed = this.#seal.seal(this.#context(state), JSON.stringify({ ...bare, returnTo }));
    // The time of issue stands before the seal, for the browser's oldest to be found. Nothing else depends on it.
    const value = `${now.toString(36)}.${sealed}`;
    return {
      state,
      codeChallenge: codeVerifier && createHash('sha256').update(codeVerifier).digest('base64url'),
      cookies: [...names.map((name) => cookie(name, value, LIFETIME_MS)), ...surplus.map(expiredCookie)],
    };
  }

  /** The login that a state belongs to, if this browser began it not longer than ten minutes ago. */
  find(req: IncomingMessage, state: string): PendingLogin | undefined {
    if (!/^[\w-]{43}$/.test(state)) return undefined;
    const cookies = parse(req.headers.cookie ?? '');
    const names = this.#cookieNames(state);
    for (const name of names) {
      const value = cookies[name];
      const text = value && this.#seal.open(this.#context(state), value.slice(value.indexOf('.') + 1));
      const login = text ? (JSON.parse(text) as PendingLogin) : undefined;
      if (login && namesFor(login.redirectUri, names, req).includes(name) && this.#isAlive(login)) return login;
    }
    return undefined;
  }

  /** Uses a login up; false if that was done before in this process. */
  use(state: string, login: PendingLogin): boolean {
    return this.#used.use(state, login.expiresAt, this.#options.clock());
  }

  /** The values of `Set-Cookie` that end a login in the browser. */
  ended(req: IncomingMessage, state: string, login: PendingLogin): readonly string[] {
    return namesFor(login.redirectUri, this.#cookieNames(state), req).map(expiredCookie);
  }

  #isAlive(login: PendingLogin): boolean {
    const left = login.expiresAt - this.#options.clock();
    // Clearly more than a whole life left: the clock was set back. Clocks of several hosts are a little apart.
    return left > 0 && left <= LIFETIME_MS + CLOCK_SKEW_MS;
  }

  #context(state: string): string {
    const { strategyName, clientID } = this.#options;
    return JSON.stringify([strategyName, clientID, state]);
  }

  #cookieNames(state: string): CookieNames {
    const plain = `${this.#prefix}${createHash('sha256').update(state).digest('base64url').slice(0, 16)}`;
    return [`${OVER_TLS}${plain}`, plain];
  }

  /** The pending cookies of the browser: those that stay when one more comes, and the names of those that have to go. */
  #pendingIn(req: IncomingMessage): { readonly kept: readonly string[]; readonly surplus: readonly string[] } {
    const own = Object.entries(parse(req.headers.cookie ?? '')).filter(([name]) =>
      plainName(name).startsWith(this.#prefix),
    );
    const byAge = own.sort(([, a], [, b]) => issuedAt(a) - issuedAt(b));
    const logins = [...new Set(byAge.map(([name]) => plainName(name)))];
    const ending = new Set(logins.slice(0, Math.max(0, logins.length - (MAX_PENDING - 1))));
    const isEnding = ([name]: readonly [string, unknown]) => ending.has(plainName(name));
    return {
      kept: byAge.filter((one) => !isEnding(one)).map(([name, value]) => `${name}=${value}; `),
      surplus: byAge
        .filter(isEnding)
        .slice(0, MAX_ENDED)
        .map(([name]) => name),
    };
  }
}

/**
 * The names that a login's cookie may have. With https the name says that the cookie came from this very host over TLS,
 * which keeps sibling hosts from planting one. A test of the application has no TLS in front of it, and a client that
 * sends such a cookie over TLS only: it gets both.
 */
function namesFor(redirectUri: string, [overTls, plain]: CookieNames, req: IncomingMessage): readonly string[] {
  if (!/^https:/i.test(redirectUri)) return [plain];
  return isFromThisComputer(req) ? [overTls, plain] : [overTls];
}

function plainName(name: string): string {
  return name.startsWith(OVER_TLS) ? name.slice(OVER_TLS.length) : name;
}

/** A strategy's name as cookie names can have it (RFC 6265, 4.1.1), without dots. */
function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/** About the characters that a cookie takes in the `Cookie` header for a sealed text. */
function cookieLength(text: string): number {
  return 100 + base64Length(text.length + 28);
}

function hasRoomFor(page: string | undefined, room: number): boolean {
  const length = page?.length ?? 0;
  return length <= MAX_PAGE && base64Length(length) <= room;
}

function base64Length(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}

function issuedAt(value: string | undefined): number {
  return Number.parseInt(value ?? '', 36) || 0;
}

/** `Lax`: the callback is a navigation from another site, and has to bring the cookie along. */
function cookie(name: string, value: string, maxAgeMs: number): string {
  const secure = name.startsWith(OVER_TLS) ? '; Secure' : '';
  return `${name}=${value}; Max-Age=${maxAgeMs / 1000}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

function expiredCookie(name: string): string {
  return cookie(name, '', 0);
}
