import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRecent } from '../clock.js';
import { ConfigurationError } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { endCookie, HOST_PREFIX, readCookie, setCookie } from '../session/browser-cookie.js';
import type { CookieSeal } from '../session/cookie-seal.js';
import { asRouted, browserUrl, isSecure, pathOf } from '../session/incoming-request.js';
import { cookieSettingsOf, lostCookieCause } from '../session/session.js';

/** Logins in a row that led nowhere, after which the next one is an error for the developer. */
const MAX_ROUNDS = 2;

/** Maximum number of login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** Rounds that a person does not make: each follows the one before at once. */
const MAX_AGE_S = 60;

/** The account of logins that failed. */
export const NO_ACCOUNT = '';

/**
 * How the browser came back from its last login, as far as this package has seen it: not at all (`''`), without the login
 * (`none`), or with a session whose grant was not found (`lost`).
 */
type Return = '' | 'none' | 'lost';

/** What the cookie holds. `at`: epoch milliseconds of the last round. `grantId`: that of the last login that succeeded, if the session holds the id. */
type Sealed = readonly [rounds: number, grantId: string, at: number, cameBack: Return, account: string];

/**
 * Counts logins of a browser that succeed, or fail, and lead to the next one at once: in a short-lived cookie.
 *
 * Without it a browser whose session or grant gets lost would be sent round for ever, with a new grant each time. A login counts
 * once the browser has come back from it without its session or its grant, which {@link noteReturn} sees: a login after
 * a logout is no round. Account and time are sealed in the cookie, so one that a sibling host has planted ends no login of another account.
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
   * Counts a login of a browser that did not come with one, and discards the grant of the round before: no session refers to it.
   * A failed one discards nothing: it may be forged, or of a tab beside the one that has logged in.
   *
   * @param grantId The new grant, if the session holds its id.
   */
  count(req: IncomingMessage, res: ServerResponse, account: string, grantId: string, manager: GrantManager): void {
    const before = this.#read(req);
    const rounds = isRound(before, account) ? before[0] + 1 : 1;
    const lastGrantId = before?.[1] ?? '';
    if (account === NO_ACCOUNT) {
      this.#write(req, res, [rounds, lastGrantId, this.#clock(), 'none', markOf(account)]);
    } else {
      this.#write(req, res, [rounds, grantId, this.#clock(), '', markOf(account)]);
      if (lastGrantId) manager.discard(lastGrantId).catch(() => {});
    }
  }

  /** Remembers the path of a login route. */
  rememberRoute(req: IncomingMessage): void {
    if (this.#loginPaths.size < MAX_LOGIN_PATHS) this.#loginPaths.add(asRouted(pathOf(browserUrl(req))));
  }

  /** Returns true if a redirect leads straight back to a login route. */
  leadsToLogin(url: unknown): boolean {
    return typeof url === 'string' && this.#loginPaths.has(asRouted(pathOf(url)));
  }

  /** Returns true if the request may have a cookie of rounds. Most have none, and then its whole name need not be known. */
  isIn({ headers }: IncomingMessage): boolean {
    return headers.cookie?.includes(this.#name) === true;
  }

  /**
   * Notes how the browser has come back from its login: starts counting anew, or, if there is no grant, says so in the cookie.
   * Another process may find a grant that was not found here: it then goes on counting. To be called if the cookie {@link isIn} the request.
   *
   * @param found `lost`: the session is there, and its grant was not found.
   */
  noteReturn(req: IncomingMessage, res: ServerResponse, found: 'grant' | 'lost' | 'none'): void {
    if (res.headersSent || readCookie(req, this.#cookieName(req)) === undefined) return;
    const [rounds, grantId, at, cameBack, account] = this.#read(req) ?? [0, '', 0, '', ''];
    if (found === 'grant') {
      if (cameBack !== 'lost') this.reset(req, res);
    } else if (rounds > 0 && cameBack !== 'lost' && cameBack !== found) {
      this.#write(req, res, [rounds, grantId, at, found, account]);
    }
  }

  /** Notes that a request came with a grant that is of no use, and is sent to the login: counted if the next one is none either. */
  noteUseless(req: IncomingMessage, res: ServerResponse): void {
    const [rounds, grantId, at, , account] = this.#read(req) ?? [0, '', this.#clock(), '', ''];
    if (!res.headersSent) this.#write(req, res, [rounds, grantId, at, 'lost', account]);
  }

  /** Returns true if a process has not found the grant of the session that the browser came back with. */
  hasLost(req: IncomingMessage): boolean {
    return this.#read(req)?.[3] === 'lost';
  }

  /** Starts counting anew. */
  reset(req: IncomingMessage, res: ServerResponse): void {
    const name = this.#cookieName(req);
    if (readCookie(req, name) !== undefined) endCookie(req, res, name);
  }

  /**
   * Throws if the browser has made too many rounds with this account. Starts counting anew, and discards the grant of the last
   * one, as {@link count} does.
   *
   * @throws ConfigurationError that names the likely cause
   */
  async refuseLoop(req: IncomingMessage, res: ServerResponse, account: string, manager: GrantManager): Promise<void> {
    const before = this.#read(req);
    if (!isRound(before, account) || before[0] < MAX_ROUNDS) return;
    const [rounds, grantId, , cameBack] = before;
    this.reset(req, res);
    if (grantId && account !== NO_ACCOUNT) await manager.discard(grantId);
    const story =
      cameBack === 'lost'
        ? `came back with its session each time, but its grant was not found. ${LOST_GRANT}`
        : `came back without a session, or without its user, each time. ${likelyCause(req)}`;
    throw new ConfigurationError(
      `The browser has logged in ${rounds} times within a minute before this login, and ${story} ${ONE_BROWSER}`,
      { code: 'ERR_LOGIN_LOOP' },
    );
  }

  /** A cookie without the prefix may come from a sibling host: with https it is not read. */
  #cookieName(req: IncomingMessage): string {
    return isSecure(req) ? HOST_PREFIX + this.#name : this.#name;
  }

  #write(req: IncomingMessage, res: ServerResponse, content: Sealed): void {
    const name = this.#cookieName(req);
    setCookie(req, res, name, this.#seal.seal(name, JSON.stringify(content)), MAX_AGE_S);
  }

  #read(req: IncomingMessage): Sealed | undefined {
    if (!this.isIn(req)) return undefined;
    const name = this.#cookieName(req);
    const value = readCookie(req, name);
    const text = value && this.#seal.open(name, value);
    if (!text) return undefined;
    const content = JSON.parse(text) as Sealed;
    return isRecent(content[2], MAX_AGE_S * 1000, this.#clock()) ? content : undefined;
  }
}

/** Returns true if the last login led nowhere, and was of this account. */
function isRound(before: Sealed | undefined, account: string): before is Sealed {
  return before !== undefined && before[3] !== '' && before[4] === markOf(account);
}

function markOf(account: string): string {
  return createHash('sha256').update(account).digest('base64url').slice(0, 11);
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
