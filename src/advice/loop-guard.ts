import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { SealedCookie } from '../session/cookies.js';
import { cookieSettingsOf } from '../session/session.js';
import { asRouted, pathOf, type Visit } from '../session/visit.js';
import { lostCookieCause } from './session-cookie.js';

/** Logins in a row that led nowhere, after which the next one is an error for the developer. */
const MAX_ROUNDS = 2;

/** Most login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** No person makes two rounds within this time: each follows the one before at once. */
export const ROUND_MAX_AGE_S = 60;

/** Callbacks in a row that come back with no parameters, after which the next one is an error. */
const MAX_EMPTY = 5;

/** The account of logins that failed. */
export const NO_ACCOUNT = '';

/**
 * How the browser came back from its last login, as far as this package has seen it: not at all (`''`), without a session
 * (`none`), without one at first and with it later (`split`), or with a session whose grant was not found (`lost`). `failed`:
 * the login itself has failed.
 */
type Return = '' | 'failed' | 'none' | 'split' | 'lost';

/** What the cookie holds. `grantId`: that of the last login that succeeded, if the session holds the id. */
export type Rounds = readonly [rounds: number, grantId: string, cameBack: Return, account: string];

/**
 * Counts logins of a browser that succeed, or fail, and lead to the next one at once: in a short-lived cookie.
 *
 * Without it, a browser whose session or grant gets lost would go round for ever, with a new grant each time. A login counts
 * once the browser has come back from it without its session or its grant, which {@link recordReturn} sees: a login after a
 * logout is no round. The account is in the cookie, so one that a sibling host has planted ends no login of another account.
 */
export class LoopGuard {
  readonly #cookie: SealedCookie<Rounds>;
  /** Routed paths at which logins have begun. */
  readonly #loginPaths = new Set<string>();

  constructor(cookie: SealedCookie<Rounds>) {
    this.#cookie = cookie;
  }

  /**
   * Counts a login of a browser that did not come with one, and discards the grant of the round before: no session refers to it.
   * A failed one discards nothing: it may be forged, or of another tab than the one that has logged in.
   *
   * @param grantId The new grant, if the session holds its id.
   */
  count(visit: Visit, res: ServerResponse, account: string, grantId: string, manager: GrantManager): void {
    const before = this.#cookie.read(visit);
    const rounds = isRound(before, account) ? before[1] + 1 : 1;
    const lastGrantId = before?.[2] ?? '';
    if (account === NO_ACCOUNT) {
      this.#cookie.write(visit, res, [rounds, lastGrantId, 'failed', markOf(account)]);
    } else {
      this.#cookie.write(visit, res, [rounds, grantId, '', markOf(account)]);
      if (lastGrantId) manager.discard(lastGrantId).catch(() => {});
    }
  }

  /** Remembers the path of a login route. */
  rememberRoute({ browserUrl }: Visit): void {
    if (this.#loginPaths.size < MAX_LOGIN_PATHS) this.#loginPaths.add(asRouted(pathOf(browserUrl)));
  }

  /** Returns true if a redirect leads straight back to a login route. */
  redirectsToLogin(url: unknown): boolean {
    return typeof url === 'string' && this.#loginPaths.has(asRouted(pathOf(url)));
  }

  /** Returns true if the request may have a cookie of rounds. Most have none. */
  hasCookie(cookieHeader: string | undefined): boolean {
    return cookieHeader !== undefined && this.#cookie.isSet({ cookieHeader });
  }

  /**
   * Records how the browser has come back from its login. With its grant it starts counting anew, unless another request came
   * without: of two processes that keep separate sessions, one knows the session. To be called if the request {@link hasCookie}.
   *
   * @param found `lost`: the session is there, and its grant was not found.
   */
  recordReturn(visit: Visit, res: ServerResponse, found: 'grant' | 'lost' | 'none'): void {
    if (res.headersSent) return;
    const before = this.#cookie.read(visit);
    const [at = 0, rounds = 0, grantId = '', cameBack = '', account = ''] = before ?? [];
    const next = returnAfter(cameBack, found);
    if (next === '') this.reset(visit, res);
    else if (rounds > 0 && next !== cameBack) this.#cookie.write(visit, res, [rounds, grantId, next, account], at);
  }

  /** Records that a request came with a grant that is of no use, and is sent to the login: counted if the next one is none either. */
  recordUseless(visit: Visit, res: ServerResponse): void {
    const [at, rounds = 0, grantId = '', , account = ''] = this.#cookie.read(visit) ?? [];
    if (!res.headersSent) this.#cookie.write(visit, res, [rounds, grantId, 'lost', account], at);
  }

  /** Returns true if a request did not find the session, or the grant, of the login that the browser came back from. */
  isBroken(visit: Visit): boolean {
    const cameBack = this.#cookie.read(visit)?.[3] ?? '';
    return cameBack !== '' && cameBack !== 'failed';
  }

  /** Starts counting anew. */
  reset(visit: Visit, res: ServerResponse): void {
    this.#cookie.end(visit, res);
  }

  /**
   * Counts a login that begins at the path of its callback while another one is pending, unless the user has clicked: the
   * service may send browsers back with no parameters, again and again.
   *
   * @throws ConfigurationError if that was often
   */
  async countEmptyCallback(visit: Visit, res: ServerResponse, manager: GrantManager): Promise<void> {
    const { 'sec-fetch-site': site } = visit.headers;
    if (site === 'same-origin' || site === 'none' || !visit.cookieHeader.includes('.login.')) return;
    const [, rounds = 0, , , account] = this.#cookie.read(visit) ?? [];
    if (rounds >= MAX_EMPTY && account === markOf(NO_ACCOUNT)) {
      this.reset(visit, res);
      throw new ConfigurationError(EMPTY_CALLBACKS, { code: 'ERR_LOGIN_LOOP' });
    }
    this.count(visit, res, NO_ACCOUNT, '', manager);
  }

  /**
   * Throws if the browser has made too many rounds with this account. Starts counting anew, and discards the grant of the last
   * one, as {@link count} does.
   *
   * @throws ConfigurationError that names the likely cause
   */
  async throwIfLooping(visit: Visit, res: ServerResponse, account: string, manager: GrantManager): Promise<void> {
    const before = this.#cookie.read(visit);
    if (!isRound(before, account) || before[1] < MAX_ROUNDS) return;
    const [, rounds, grantId, cameBack] = before;
    this.reset(visit, res);
    if (grantId && account !== NO_ACCOUNT) await manager.discard(grantId);
    throw new ConfigurationError(
      `The browser has logged in ${rounds} times within a minute before this login, and ${storyOf(cameBack, visit)} If this happens in one browser alone, delete its cookies for this site and its sibling hosts.`,
      { code: 'ERR_LOGIN_LOOP' },
    );
  }
}

/** Returns what is known of a browser's return after one more request. */
function returnAfter(cameBack: Return, found: 'grant' | 'lost' | 'none'): Return {
  if (cameBack === 'lost' || found === 'lost') return 'lost';
  if (found === 'none') return cameBack || 'none';
  // Without a login in between, a session that was missing cannot come back, unless another process has it.
  return cameBack === '' || cameBack === 'failed' ? '' : 'split';
}

/** Returns true if the last login led nowhere, and was of this account. */
function isRound<C extends readonly [at: number, ...Rounds]>(before: C | undefined, account: string): before is C {
  return before !== undefined && before[3] !== '' && before[4] === markOf(account);
}

function markOf(account: string): string {
  return createHash('sha256').update(account).digest('base64url').slice(0, 11);
}

function storyOf(cameBack: Return, visit: Visit): string {
  if (cameBack === 'lost') return `came back with its session each time, but its grant was not found. ${LOST_GRANT}`;
  if (cameBack === 'split')
    return `its session was found by some requests, and not by others: sessions live in the memory of one of several processes. ${SHARE_SESSIONS}`;
  return `came back without a session, or without its user, each time. ${likelyCause(visit)}`;
}

const EMPTY_CALLBACKS =
  'The service has sent the browser back to callbackURL several times with neither code nor error. Is the callback URL that is registered at the service another one, or does a proxy drop the query?';

const SHARE_SESSIONS =
  'Give express-session a store that all processes share, such as connect-redis or connect-pg-simple, or have the balancer send each browser to one process.';

const LOST_GRANT =
  "Likely causes: the option grantId returns another id for the user of deserializeUser than for that of verify, or the application's processes have different encryptionKeys, or separate token stores (in memory, for example).";

function likelyCause(visit: Visit): string {
  const { sameSite, secure } = cookieSettingsOf(visit.req);
  if (sameSite === 'strict' || sameSite === true) {
    return 'Its session cookie is SameSite=Strict, which browsers leave out when they come from the service: set sameSite to lax.';
  }
  const seen = lostCookieCause(visit);
  if (seen !== undefined) return seen;
  if (secure) {
    return "Its session cookie is secure, and express-session sets it only where it sees https: behind a proxy, set Express' trust proxy.";
  }
  return `Likely causes: the session cookie is dropped (secure without https, SameSite=Strict, another domain or path, larger than 4 KB), the session store loses sessions, sessions live in the memory of one of several processes, requireAuthorization() or apiClient() stands before the session, deserializeUser refuses the user, the option grantId returns another id for the user of deserializeUser than for that of verify, or failureRedirect leads to the login route.`;
}
