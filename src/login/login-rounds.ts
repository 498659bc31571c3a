import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { type CookieSeal, endCookie, readCookie, setCookie } from '../request/browser-cookie.js';
import { asRouted, browserUrl, pathOf } from '../request/incoming-request.js';
import { cookieSettingsOf } from '../request/session.js';

/** Logins in a row, none of which the browser came back from with a session, after which it is told to the developer. */
const MAX_ROUNDS = 3;

/** Maximum number of login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** Rounds that a person does not make: each follows the one before at once. */
const MAX_AGE_S = 60;

/**
 * Counts logins of a browser that succeed, or fail, and are begun again at once: in a short-lived cookie.
 *
 * Without it a browser that drops its session cookie would be sent round for ever, with a new grant each time.
 */
export class LoginRounds {
  /** Name of the cookie. `apiClient` ends it when a session comes back. */
  readonly cookieName: string;
  readonly #seal: CookieSeal;
  /** Routed paths at which logins have begun. */
  readonly #loginPaths = new Set<string>();

  constructor(cookieName: string, seal: CookieSeal) {
    this.cookieName = cookieName;
    this.#seal = seal;
  }

  /**
   * Counts one more round of a browser that brought no session along.
   *
   * @param grantId The new grant, if the login succeeded.
   * @returns the grant of the round before: no session refers to it
   */
  count(req: IncomingMessage, res: ServerResponse, grantId: string | undefined): string | undefined {
    const before = this.#read(req);
    const sealed = this.#seal.seal(this.cookieName, JSON.stringify([before.rounds + 1, grantId ?? null]));
    setCookie(req, res, this.cookieName, sealed, MAX_AGE_S);
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

  /** Starts counting anew: the browser has a session. */
  reset(req: IncomingMessage, res: ServerResponse): void {
    if (readCookie(req, this.cookieName) !== undefined) endCookie(req, res, this.cookieName);
  }

  /** Returns an error, and the grant of the last round, if a browser has made too many rounds. */
  loopOf(
    req: IncomingMessage,
    res: ServerResponse,
  ): { readonly error: ConfigurationError; readonly grantId: string | undefined } | undefined {
    const { rounds, grantId } = this.#read(req);
    if (rounds < MAX_ROUNDS) return undefined;
    endCookie(req, res, this.cookieName);
    const error = new ConfigurationError(
      `The browser was sent to log in ${rounds} times in a row, and came back without a session each time. ${likelyCause(req)}`,
      { code: 'ERR_LOGIN_LOOP' },
    );
    return { error, grantId };
  }

  #read(req: IncomingMessage): { readonly rounds: number; readonly grantId: string | undefined } {
    const value = readCookie(req, this.cookieName);
    const text = value && this.#seal.open(this.cookieName, value);
    const [rounds, grantId] = text ? (JSON.parse(text) as [number, string | null]) : [0, null];
    return { rounds, grantId: grantId ?? undefined };
  }
}

function likelyCause(req: IncomingMessage): string {
  const { sameSite, secure } = cookieSettingsOf(req);
  if (sameSite === 'strict' || sameSite === true) {
    return 'Its session cookie is SameSite=Strict, which browsers leave out when they come from the service: set sameSite to lax.';
  }
  if (secure) {
    return "Its session cookie is secure, and express-session sets it only where it sees https: behind a proxy, set Express' trust proxy.";
  }
  return 'Likely causes: the session cookie is dropped (secure without https, SameSite=Strict, another domain or path), the session store loses sessions, requireAuthorization() or apiClient() stands before the session, or failureRedirect leads to the login route.';
}
