import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { SealedCookie } from '../session/cookies.js';
import { asRouted, pathOf, type Visit } from '../session/visit.js';
import { lostSessionCause } from './session-cookie.js';

/** Logins in a row that led nowhere, after which the next one is an error for the developer. */
const MAX_ROUNDS = 2;

/** The same for callbacks without parameters. */
const MAX_EMPTY = 5;

/** Maximum number of login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** Users take longer for two rounds. In a loop, each round follows the one before at once. */
export const ROUND_MAX_AGE_S = 60;

/** Stands for the account of logins that failed. */
const NO_ACCOUNT = '';

/**
 * How the browser came back from its last login, as far as this package has seen it: not at all (`''`), without a session
 * (`none`), without one at first and with it later (`split`), or with a session whose grant was not found (`lost`). `failed`:
 * the login itself failed.
 */
type Return = '' | 'failed' | 'none' | 'split' | 'lost';

/** What the cookie holds. `grantId`: that of the last login that succeeded, if the session holds the id. */
export type Rounds = readonly [rounds: number, grantId: string, cameBack: Return, account: string];

/**
 * Counts logins of a browser that succeed, or fail, and lead to the next one at once: in a short-lived cookie.
 *
 * Without it, a browser whose session or grant gets lost would go round for ever, with a new grant each time. A login counts
 * once the browser has come back from it without its session or its grant, which {@link recordReturn} sees: a login after a
 * logout is no round. The cookie names the account, so one that a sibling host planted ends no login of another account.
 */
export class LoopGuard {
  readonly #cookie: SealedCookie<Rounds>;
  /** Routed paths at which logins have begun. */
  readonly #loginPaths = new Set<string>();

  constructor(cookie: SealedCookie<Rounds>) {
    this.#cookie = cookie;
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
   * Records how the browser came back from its login. With its grant it starts counting anew, unless another request came
   * without: of two processes that keep separate sessions, one knows the session. To be called if the request {@link hasCookie}.
   *
   * @param found `lost`: the session is there, and its grant was not found.
   */
  recordReturn(visit: Visit, res: ServerResponse, found: 'grant' | 'lost' | 'none'): void {
    if (res.headersSent) return;
    const { at, rounds, grantId, cameBack, account } = this.#read(visit);
    const next = returnAfter(cameBack, found);
    if (next === '') this.reset(visit, res);
    else if (rounds > 0 && next !== cameBack) this.#cookie.write(visit, res, [rounds, grantId, next, account], at);
  }

  /** Records that a request came with a useless grant, and is sent to the login: counted if the next grant is useless too. */
  recordUseless(visit: Visit, res: ServerResponse): void {
    const { at, rounds, grantId, account } = this.#read(visit);
    if (!res.headersSent) this.#cookie.write(visit, res, [rounds, grantId, 'lost', account], at);
  }

  /** Returns true if a request did not find the session, or the grant, of the login that the browser came back from. */
  isBroken(visit: Visit): boolean {
    const { cameBack } = this.#read(visit);
    return cameBack !== '' && cameBack !== 'failed';
  }

  /** Starts counting anew. */
  reset(visit: Visit, res: ServerResponse): void {
    this.#cookie.end(visit, res);
  }

  /**
   * Throws if the browser made too many rounds with this account. Starts counting anew, and discards the grant of the last
   * round.
   *
   * @throws ConfigurationError that names the likely cause
   */
  async throwIfLooping(visit: Visit, res: ServerResponse, account: string, manager: GrantManager): Promise<void> {
    const before = this.#read(visit);
    if (roundsOf(before, account) < MAX_ROUNDS) return;
    this.reset(visit, res);
    if (before.grantId) await manager.discard(before.grantId);
    throw loginLoop(storyOf(before, visit));
  }

  /**
   * Counts a login, and discards the grant of the round before: no session refers to it.
   *
   * @param grantId The new grant, if the session holds its id.
   */
  count(visit: Visit, res: ServerResponse, account: string, grantId: string, manager: GrantManager): void {
    const before = this.#read(visit);
    this.#cookie.write(visit, res, [roundsOf(before, account) + 1, grantId, '', markOf(account)]);
    if (before.grantId) manager.discard(before.grantId).catch(() => {});
  }

  /**
   * Counts a login that failed and leads to the next one. It discards no grant: it may be forged, or of another tab than the
   * one that logged in.
   *
   * @throws ConfigurationError that names the likely cause, if too many failed
   */
  countFailure(visit: Visit, res: ServerResponse): void {
    this.#countFailure(visit, res, MAX_ROUNDS, (before) => storyOf(before, visit));
  }

  /**
   * Counts a login that begins at the path of its callback while another one is pending, unless the user clicked: the
   * service may send browsers back without parameters, again and again.
   *
   * @throws ConfigurationError if that was often
   */
  countEmptyCallback(visit: Visit, res: ServerResponse): void {
    const { 'sec-fetch-site': site } = visit.headers;
    if (site === 'same-origin' || site === 'none' || !visit.cookieHeader.includes('.login.')) return;
    this.#countFailure(visit, res, MAX_EMPTY, () => EMPTY_CALLBACKS);
  }

  #countFailure(visit: Visit, res: ServerResponse, max: number, explain: (before: Before) => string): void {
    const before = this.#read(visit);
    const rounds = roundsOf(before, NO_ACCOUNT);
    if (rounds < max) {
      this.#cookie.write(visit, res, [rounds + 1, before.grantId, 'failed', markOf(NO_ACCOUNT)]);
      return;
    }
    this.reset(visit, res);
    throw loginLoop(explain(before));
  }

  #read(visit: Visit): Before {
    const [at, rounds = 0, grantId = '', cameBack = '', account = ''] = this.#cookie.read(visit) ?? [];
    return { at, rounds, grantId, cameBack, account };
  }
}

/** What the browser's cookie says, if it has one. `at`: when the last login took place, in epoch milliseconds. */
interface Before {
  readonly at: number | undefined;
  readonly rounds: number;
  readonly grantId: string;
  readonly cameBack: Return;
  readonly account: string;
}

/** Returns how many logins of this account led nowhere, up to the last one. */
function roundsOf({ rounds, cameBack, account }: Before, of: string): number {
  return cameBack !== '' && account === markOf(of) ? rounds : 0;
}

function markOf(account: string): string {
  return hash('sha256', account, 'base64url').slice(0, 11);
}

/** Returns what is known of a browser's return after one more request. */
function returnAfter(cameBack: Return, found: 'grant' | 'lost' | 'none'): Return {
  if (cameBack === 'lost' || found === 'lost') return 'lost';
  if (found === 'none') return cameBack || 'none';
  // Without a login in between, a session that was missing cannot come back, unless another process has it.
  return cameBack === '' || cameBack === 'failed' ? '' : 'split';
}

function loginLoop(message: string): ConfigurationError {
  return new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' });
}

function storyOf({ rounds, cameBack }: Before, visit: Visit): string {
  const causes: Partial<Record<Return, string>> = { lost: LOST_GRANT, split: SPLIT_SESSIONS };
  const cause =
    causes[cameBack] ?? `came back without a session, or without its user, each time. ${lostSessionCause(visit)}`;
  return `The browser has logged in ${rounds} times within a minute before this login, and ${cause} If this happens in one browser alone, delete its cookies for this site and its sibling hosts.`;
}

const EMPTY_CALLBACKS =
  'The service has sent the browser back to callbackURL several times with neither code nor error. Is the callback URL that is registered at the service another one, or does a proxy drop the query?';

const SPLIT_SESSIONS =
  'its session was found by some requests, and not by others: sessions live in the memory of one of several processes. Give express-session a store that all processes share, such as connect-redis or connect-pg-simple, or have the balancer send each browser to one process.';

const LOST_GRANT =
  "came back with its session each time, but its grant was not found. Likely causes: the option grantId returns another id for the user of deserializeUser than for that of verify, or the application's processes have different encryptionKeys, or separate token stores (in memory, for example).";
