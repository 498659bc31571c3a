import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { type CookieSeal, endCookie, HOST_PREFIX, readCookie, setCookie } from './browser-cookie.js';
import { asRouted, browserUrl, isSecure, pathOf } from './incoming-request.js';
import { cookieSettingsOf, lostCookieCause } from './session.js';

/** Logins in a row, none of which the browser came back from with a session, after which it is told to the developer. */
const MAX_ROUNDS = 3;

/** Maximum number of login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** Rounds that a person does not make: each follows the one before at once. */
const MAX_AGE_S = 60;

/** What the cookie says of a browser. */
interface Rounds {
  readonly rounds: number;
  /** The grant of the last round, if the session holds its id. */
  readonly grantId?: string;
  /** True if the browser has come back with its session, whose grant was not found. */
  readonly isLost: boolean;
}

const NO_ROUNDS: Rounds = { rounds: 0, isLost: false };

/** What the cookie holds, in this order. `at`: epoch milliseconds of the last round. */
type Sealed = readonly [rounds: number, grantId: string | 0, at: number, isLost: 0 | 1];

/**
 * Counts logins of a browser that succeed, or fail, and are begun again at once: in a short-lived cookie.
 *
 * Without it a browser whose session or grant gets lost would be sent round for ever, with a new grant each time. The time is
 * sealed in the cookie, and with https its name has the prefix `__Host-`: a sibling host that plants one stops no login for good.
 */
export class LoginRounds {
  readonly #name: string;
  readonly #seal: CookieSeal;
  readonly #clock: () => number;
  /** Routed paths at which logins have begun. */
  readonly #loginPaths = new Set<string>();

  /** @param name Of the cookie, without the prefix. @param clock Epoch milliseconds. */
  constructor(name: string, seal: CookieSeal, clock: () => number) {
    this.#name = name;
    this.#seal = seal;
    this.#clock = clock;
  }

  /**
   * Counts one more round of a browser whose session or grant was lost.
   *
   * @param grantId The new grant, if the login succeeded.
   * @returns the grant of the round before: no session refers to it
   */
  count(req: IncomingMessage, res: ServerResponse, grantId: string | undefined): string | undefined {
    const before = this.#read(req);
    this.#write(req, res, [before.rounds + 1, grantId ?? 0, this.#clock(), before.isLost ? 1 : 0]);
    return before.grantId;
  }

  /** Remembers the path of a login route. */
  rememberRoute(req: IncomingMessage): void {
    if (this.#loginPaths.size < MAX_LOGIN_PATHS) this.#loginPaths.add(asRouted(pathOf(browserUrl(req))));
  }

  /** Returns true if a redirect leads straight back to a login route. */
  leadsToLogin(url: unknown): boolean {
    return typeof url === 'string' && this.#loginPaths.has(asRouted(pathOf(url)));
  }

  /**
   * Notes that the browser has come back with its session: starts counting anew, or, if the grant was not found, says so in
   * the cookie. Another process may find the grant: it then goes on counting.
   */
  noteReturn(req: IncomingMessage, res: ServerResponse, isAuthorized: boolean): void {
    if (readCookie(req, this.#cookieName(req)) === undefined || res.headersSent) return;
    const { rounds, grantId, at, isLost } = this.#read(req);
    if (isAuthorized && !isLost) this.reset(req, res);
    else if (!isAuthorized && !isLost && at !== undefined) this.#write(req, res, [rounds, grantId ?? 0, at, 1]);
  }

  /** Returns true if a process has not found the grant of the session that the browser came back with. */
  hasLost(req: IncomingMessage): boolean {
    return this.#read(req).isLost;
  }

  /** Starts counting anew. */
  reset(req: IncomingMessage, res: ServerResponse): void {
    const name = this.#cookieName(req);
    if (readCookie(req, name) !== undefined) endCookie(req, res, name);
  }

  /** Returns an error, and the grant of the last round, if a browser has made too many rounds. */
  loopOf(
    req: IncomingMessage,
  ): { readonly error: ConfigurationError; readonly grantId: string | undefined } | undefined {
    const { rounds, grantId, isLost } = this.#read(req);
    if (rounds < MAX_ROUNDS) return undefined;
    const story = isLost
      ? `came back with its session each time, but its grant was not found. ${LOST_GRANT}`
      : `came back without a session, or without its user, each time. ${likelyCause(req)}`;
    const error = new ConfigurationError(
      `The browser has logged in ${rounds} times within a minute, and ${story} ${ONE_BROWSER}`,
      { code: 'ERR_LOGIN_LOOP' },
    );
    return { error, grantId };
  }

  /** A cookie without the prefix may come from a sibling host: with https it is not read. */
  #cookieName(req: IncomingMessage): string {
    return isSecure(req) ? HOST_PREFIX + this.#name : this.#name;
  }

  #write(req: IncomingMessage, res: ServerResponse, content: Sealed): void {
    const name = this.#cookieName(req);
    setCookie(req, res, name, this.#seal.seal(name, JSON.stringify(content)), MAX_AGE_S);
  }

  #read(req: IncomingMessage): Rounds & { readonly at?: number } {
    const name = this.#cookieName(req);
    const value = readCookie(req, name);
    const text = value && this.#seal.open(name, value);
    if (!text) return NO_ROUNDS;
    const [rounds, grantId, at, isLost] = JSON.parse(text) as Sealed;
    // Clocks of several hosts differ a little.
    if (Math.abs(this.#clock() - at) > MAX_AGE_S * 1000) return NO_ROUNDS;
    return { rounds, at, isLost: isLost === 1, ...(grantId ? { grantId } : {}) };
  }
}

const LOST_GRANT =
  "Likely causes: the option grantId returns another id for the user of deserializeUser than for that of verify, or the application's processes have different encryptionKeys, or token stores of their own (in memory, for example).";

const ONE_BROWSER = 'If this happens in one browser alone, delete its cookies for this site and its sibling hosts.';

function likelyCause(req: IncomingMessage): string {
  const { sameSite, secure } = cookieSettingsOf(req);
  if (sameSite === 'strict' || sameSite === true) {
    return 'Its session cookie is SameSite=Strict, which browsers leave out when they come from the service: set sameSite to lax.';
  }
  const seen = lostCookieCause(req);
  if (seen !== undefined) return seen;
  if (secure) {
    return "Its session cookie is secure, and express-session sets it only where it sees https: behind a proxy, set Express' trust proxy.";
  }
  return 'Likely causes: the session cookie is dropped (secure without https, SameSite=Strict, another domain or path), the session store loses sessions, requireAuthorization() or apiClient() stands before the session, deserializeUser refuses the user, the option grantId returns another id for the user of deserializeUser than for that of verify, or failureRedirect leads to the login route.';
}
