import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ConfigurationError } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { LoginReturns, Return, Rounds } from '../session/login-returns.js';
import { asRouted, pathOf, type Visit } from '../session/visit.js';
import { lostSessionCause } from './session-cookie.js';

/** Logins in a row that led nowhere, after which the next one is an error for the developer. */
const MAX_ROUNDS = 2;

/** Callbacks in a row without parameters, after which the next one is an error. */
const MAX_EMPTY = 5;

/** Maximum number of login routes that are remembered. An application has one or a few. */
const MAX_LOGIN_PATHS = 50;

/** The account of logins that failed. */
const NO_ACCOUNT = '';

/**
 * Ends the loop of a browser whose session or grant gets lost at each login. A login counts once the browser came back from it
 * without them, so a login after a logout does not. The cookie names the account: one that a sibling host planted ends no login
 * of another account.
 */
export class LoopGuard {
  readonly #returns: LoginReturns;
  /** Routed paths at which logins have begun. */
  readonly #loginPaths = new Set<string>();

  constructor(returns: LoginReturns) {
    this.#returns = returns;
  }

  rememberRoute({ browserUrl }: Visit): void {
    if (this.#loginPaths.size < MAX_LOGIN_PATHS) this.#loginPaths.add(asRouted(pathOf(browserUrl)));
  }

  /** Returns true if a redirect leads straight back to a login route. */
  redirectsToLogin(url: unknown): boolean {
    return typeof url === 'string' && this.#loginPaths.has(asRouted(pathOf(url)));
  }

  /** Returns true if a request did not find the session, or the grant, of the login that the browser came back from. */
  isBroken(visit: Visit): boolean {
    const { cameBack } = this.#returns.read(visit);
    return cameBack !== '' && cameBack !== 'failed';
  }

  /** Throws if the browser made too many rounds with this account, and discards the last grant. @throws ConfigurationError */
  async throwIfLooping(visit: Visit, res: ServerResponse, account: string, manager: GrantManager): Promise<void> {
    const before = this.#returns.read(visit);
    if (roundsOf(before, account) < MAX_ROUNDS) return;
    this.#returns.reset(visit, res);
    if (before.grantId) await manager.discard(before.grantId);
    throw loginLoop(storyOf(before, visit));
  }

  /** Counts a login, and discards the grant of the round before. @param grantId The new grant, if the session holds its id. */
  count(visit: Visit, res: ServerResponse, account: string, grantId: string, manager: GrantManager): void {
    const before = this.#returns.read(visit);
    const rounds = roundsOf(before, account) + 1;
    this.#returns.write(visit, res, { rounds, grantId, cameBack: '', account: markOf(account) });
    if (before.grantId) manager.discard(before.grantId).catch(() => {});
  }

  /**
   * Counts a login that failed and leads to the next one. It may be forged, or of another tab, so it discards no grant.
   *
   * @param isEmpty True if the callback had no parameters.
   * @throws ConfigurationError if too many failed
   */
  countFailure(visit: Visit, res: ServerResponse, isEmpty = false): void {
    const before = this.#returns.read(visit);
    const rounds = roundsOf(before, NO_ACCOUNT);
    if (rounds >= (isEmpty ? MAX_EMPTY : MAX_ROUNDS)) {
      this.#returns.reset(visit, res);
      throw loginLoop(isEmpty ? EMPTY_CALLBACKS : storyOf(before, visit));
    }
    const { grantId } = before;
    this.#returns.write(visit, res, { rounds: rounds + 1, grantId, cameBack: 'failed', account: markOf(NO_ACCOUNT) });
  }

  /**
   * Counts a login that begins at the path of its callback, unless the user clicked: the service may send browsers back
   * without parameters, again and again.
   *
   * @throws ConfigurationError if that was often
   */
  countEmptyCallback(visit: Visit, res: ServerResponse): void {
    const { 'sec-fetch-site': site } = visit.headers;
    if (site !== 'same-origin' && site !== 'none') this.countFailure(visit, res, true);
  }
}

/** Returns how many logins of this account led nowhere, up to the last one. */
function roundsOf({ rounds, cameBack, account }: Rounds, of: string): number {
  return cameBack !== '' && account === markOf(of) ? rounds : 0;
}

function markOf(account: string): string {
  return hash('sha256', account, 'base64url').slice(0, 11);
}

function loginLoop(message: string): ConfigurationError {
  return new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' });
}

function storyOf({ rounds, cameBack }: Rounds, visit: Visit): string {
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
