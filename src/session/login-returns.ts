import type { ServerResponse } from 'node:http';
import type { SealedCookie } from './cookies.js';
import type { Visit } from './visit.js';

/** Users take longer for two rounds. In a loop, each round follows the one before at once. */
export const ROUND_MAX_AGE_S = 60;

/**
 * How the browser came back from its last login, as far as this package has seen it: not at all (`''`), without a session
 * (`none`), without one at first and with it later (`split`), or with a session whose grant was not found (`lost`). `failed`:
 * the login itself failed.
 */
export type Return = '' | 'failed' | 'none' | 'split' | 'lost';

/** What a request came with. */
type Found = 'grant' | 'none' | 'lost' | 'useless';

/** The content of the cookie. */
export type RoundsContent = readonly [rounds: number, grantId: string, cameBack: Return, account: string];

/** Logins of one browser in a row that led nowhere, and the last of them. */
export interface Rounds {
  readonly rounds: number;
  /** The grant of the last login that succeeded, if the session holds its id; else empty. */
  readonly grantId: string;
  readonly cameBack: Return;
  /** Identifies the account of the last login; empty if that failed. */
  readonly account: string;
  /** When the last login took place, in epoch milliseconds. */
  readonly at?: number | undefined;
}

/** Records how a browser came back from its logins, in a short-lived cookie. The loop guard counts with it. */
export class LoginReturns {
  /** A `Cookie` header without it has no record. Most have none. */
  readonly cookieName: string;
  readonly #cookie: SealedCookie<RoundsContent>;

  constructor(cookie: SealedCookie<RoundsContent>) {
    this.cookieName = cookie.name;
    this.#cookie = cookie;
  }

  /**
   * Records how the browser came back from its login. Counting starts anew if it came with its grant, unless another request
   * came without: of two processes with separate sessions, one knows the session. To be called if the request may have the cookie.
   *
   * @param found `none`: no session, or no logged-in user. `lost`: the session is there, and its grant was not found. `useless`:
   *   a grant that is refused, which counts if the next one is, too; the request need not have the cookie.
   */
  recordReturn(visit: Visit, res: ServerResponse, found: Found): void {
    if (res.headersSent) return;
    const before = this.read(visit);
    const cameBack = returnAfter(before.cameBack, found);
    if (cameBack === '') this.reset(visit, res);
    else if (found === 'useless' || (before.rounds > 0 && cameBack !== before.cameBack))
      this.write(visit, res, { ...before, cameBack });
  }

  /** Starts counting anew. */
  reset(visit: Visit, res: ServerResponse): void {
    this.#cookie.end(visit, res);
  }

  /** Returns what the browser's cookie says; no rounds if it has none. */
  read(visit: Visit): Rounds {
    const [at, rounds = 0, grantId = '', cameBack = '', account = ''] = this.#cookie.read(visit) ?? [];
    return { at, rounds, grantId, cameBack, account };
  }

  write(visit: Visit, res: ServerResponse, { at, rounds, grantId, cameBack, account }: Rounds): void {
    this.#cookie.write(visit, res, [rounds, grantId, cameBack, account], at);
  }
}

/** Returns what is known of a browser's return after one more request. */
function returnAfter(cameBack: Return, found: Found): Return {
  if (cameBack === 'lost' || found === 'lost' || found === 'useless') return 'lost';
  if (found === 'none') return cameBack || 'none';
  // Without a login in between, a session that was missing cannot come back, unless another process has it.
  return cameBack === '' || cameBack === 'failed' ? '' : 'split';
}
