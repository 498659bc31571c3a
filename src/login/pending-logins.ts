import { hash, randomBytes, randomInt } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { CLOCK_SKEW_MS, remainingMs } from '../clock.js';
import type { Settings } from '../options.js';
import {
  CookieSeal,
  cookieAttributes,
  cookieToken,
  HeaderBudget,
  HOST_PREFIX,
  hasLoginCookie,
  LOGIN_PART,
} from '../session/cookies.js';
import type { Visit } from '../session/visit.js';
import type { StoreAccess } from '../stores/store-access.js';
import { MARK_PREFIX, type TokenStore } from '../stores/token-store.js';

/** For which frame a popup logs in. */
export interface FrameTarget {
  /** S256 of the frame's verifier (RFC 7636, 4.2). */
  readonly challenge: string;
  /** Id of the user's grant, if the requests of the frame identify the user. */
  readonly grantId: string | undefined;
  /** Scopes that the page of the frame needs, with those that are granted; `undefined` for those of every login. */
  readonly scope?: string | undefined;
  /** True if the frame is logged in, and lacks scopes. */
  readonly isStepUp?: boolean;
}

/** What begins a login. */
export interface NewLogin {
  /** The redirect URL of the authorization request. The code exchange repeats it. */
  readonly redirectUri: string;
  /** The path to return to after the login, of this origin. */
  readonly returnTo: string | undefined;
  /** True for `passport.authorize`, which connects an account to the user who is logged in. */
  readonly isConnection: boolean;
  /** True if the authorization request had the `prompt` `none`: the service shows no page (OpenID Connect Core, 3.1.2.1). */
  readonly isSilent: boolean;
  /** True if a page asked for more scopes. */
  readonly isStepUp?: boolean;
  /** The requested scopes, unless they are the strategy's own. */
  readonly scope?: string | undefined;
  /** Identifies the user who was logged in when the login began: see `RequestGrants.userMarkOf`. */
  readonly userMark: string;
  /** The frame that a popup logs in, instead of itself. */
  readonly frame?: FrameTarget | undefined;
  /** The option `state` of `passport.authenticate`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
}

/** A login between its authorization request and its callback. */
export interface PendingLogin extends NewLogin {
  readonly state: string;
  /** Code verifier (RFC 7636, 4.1), with PKCE. */
  readonly codeVerifier: string | undefined;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** Line of `Set-Cookie` that ends the login in the browser. */
  readonly endCookie: string;
}

/** What a cookie holds of a login. The names are short since a browser may have many, and defaults are left out. */
interface Sealed {
  readonly v?: string | undefined;
  /** 1: a connection; 2: silent; 4: a step-up. */
  readonly k?: number | undefined;
  readonly p?: string | undefined;
  readonly u?: string | undefined;
  readonly r?: string | undefined;
  readonly s?: string | undefined;
  readonly d?: Readonly<Record<string, unknown>> | undefined;
  readonly f?: readonly [challenge: string, grantId?: string] | undefined;
}

const LIFETIME_MS = 10 * 60 * 1000;

/** The name of a pending login's cookie, of any strategy. */
const LOGIN_COOKIE = /^(?:__Host-)?[\w%-]+\.login\.[\w-]{16}$/;

/** Maximum number of pending logins of one browser. Beyond it the oldest ends. */
const MAX_PENDING = 12;

/** Logins that may begin at once, each with a page of up to 500 characters. */
const TABS = 8;

/** Characters of a cookie with a page of 500 characters, and of one without a page. */
const [TYPICAL_COOKIE, BARE_COOKIE] = [800, 220];

/** A cookie up to this length keeps its page while there is room, whatever may follow. */
const MAX_FREE_COOKIE = 1_000;

/**
 * Logins that have begun and not finished yet. Each is in a separate sealed cookie; the server stores none.
 *
 * The cookie's name is a hash of the state, and its seal opens only for that state, strategy and service. So tabs do not
 * disturb each other, a callback in another browser finds nothing, and unfinished logins cost no memory.
 *
 * @see RFC 6749, 10.12; RFC 9700, 4.7; service.md, 5.7
 */
export class PendingLogins {
  readonly #callbackURL: string;
  readonly #clock: () => number;
  readonly #pkce: boolean;
  readonly #seal: CookieSeal;
  readonly #token: string;
  /** What the seal of all logins is bound to. */
  readonly #context: string;

  /** @param service Differs for each `authUrl` and `clientID`. */
  constructor(settings: Pick<Settings, 'name' | 'callbackURL' | 'clientSecret' | 'clock' | 'pkce'>, service: string) {
    const { name, callbackURL, clientSecret, clock, pkce } = settings;
    this.#callbackURL = callbackURL;
    this.#clock = clock;
    this.#pkce = pkce;
    this.#seal = new CookieSeal('pending logins', clientSecret);
    this.#token = cookieToken(name);
    this.#context = JSON.stringify([name, service, callbackURL]);
  }

  /**
   * Begins a login. The cookie leaves out a page that it has no room for: that login leads to `/`. The oldest pending logins
   * end if there is no room for one more.
   *
   * The whole `Cookie` header counts, cookies of other software too, since Node and proxies would refuse every request of the
   * browser. The response counts too: a sibling host can plant hundreds of cookies, too many to end in one response.
   *
   * @param location Characters of the address that the response redirects to.
   * @returns `codeChallenge`: S256 of the code verifier, with PKCE (RFC 7636, 4.2)
   */
  begin(
    visit: Visit,
    res: ServerResponse,
    login: NewLogin,
    location: number,
  ): { readonly state: string; readonly codeChallenge: string | undefined } {
    const { redirectUri, returnTo, userMark, isConnection, isSilent, isStepUp, scope, frame, data } = login;
    // One call for everything: each costs as much as a hash.
    const random = randomBytes(32 + 32 + CookieSeal.IV_LENGTH);
    const state = random.toString('base64url', 0, 32);
    const codeVerifier = this.#pkce ? random.toString('base64url', 32, 64) : undefined;
    const isTls = /^https:/i.test(redirectUri);
    const name = `${isTls ? HOST_PREFIX : ''}${this.#token}${cookieEnd(state)}`;
    // Precedes the seal, which covers it, so that any strategy can find the browser's oldest login.
    const issued = Math.trunc(this.#clock()).toString(36);
    const pending = hasLoginCookie(visit) ? pendingIn(visit, isTls) : [];
    const content: Sealed = {
      v: codeVerifier,
      k: (isConnection ? 1 : 0) | (isSilent ? 2 : 0) | (isStepUp ? 4 : 0) || undefined,
      p: returnTo,
      u: userMark || undefined,
      r: redirectUri === this.#callbackURL ? undefined : redirectUri,
      s: scope,
      d: data,
      f: frame && (frame.grantId === undefined ? [frame.challenge] : [frame.challenge, frame.grantId]),
    };
    const budget = new HeaderBudget(visit, res, location);
    let text = JSON.stringify(content);
    const length = issued.length + 1 + CookieSeal.lengthOf(text);
    const isFree = name.length + length <= MAX_FREE_COOKIE;
    const others = Math.max(
      (TABS - pending.length - 1) * TYPICAL_COOKIE,
      (MAX_PENDING - pending.length - 1) * BARE_COOKIE,
    );
    // A long page leaves room for the other tabs that may begin a login.
    if (!budget.hasRoomFor(name, length, isFree ? 0 : Math.max(others, 0)))
      text = JSON.stringify({ ...content, p: undefined });
    const value = `${issued}.${this.#seal.seal(`${this.#context} ${state} ${issued}`, text, random.subarray(64))}`;
    budget.add(name, value.length);
    const attributes = cookieAttributes(visit.req, isTls);
    res.appendHeader('Set-Cookie', `${name}=${value}; Max-Age=${LIFETIME_MS / 1000}${attributes}`);
    for (const [ended, [oldest, former]] of pending.entries()) {
      const isFull = pending.length - ended >= MAX_PENDING || budget.isExceeded;
      if (!isFull || !budget.end(oldest, former)) break;
      res.appendHeader('Set-Cookie', `${oldest}=; Max-Age=0${attributes}`);
    }
    return { state, codeChallenge: codeVerifier && hash('sha256', codeVerifier, 'base64url') };
  }

  /** Returns the login that a state belongs to, if this browser began it within the last ten minutes. */
  find(visit: Visit, state: string): PendingLogin | undefined {
    const bareName = /^[\w-]{43}$/.test(state) ? this.#token + cookieEnd(state) : undefined;
    if (bareName === undefined || !visit.cookieHeader.includes(bareName)) return undefined;
    for (const name of [HOST_PREFIX + bareName, bareName]) {
      const [issued = '', sealed] = visit.cookies[name]?.split('.', 2) ?? [];
      const text = sealed && this.#seal.open(`${this.#context} ${state} ${issued}`, sealed);
      if (!text) continue;
      const { v, k = 0, p, u = '', r = this.#callbackURL, s, d, f } = JSON.parse(text) as Sealed;
      const expiresAt = Number.parseInt(issued, 36) + LIFETIME_MS;
      const isAlive = remainingMs(expiresAt, this.#clock(), LIFETIME_MS + CLOCK_SKEW_MS) > 0;
      const isTls = /^https:/i.test(r);
      // With https, a cookie without the prefix may be a sibling host's.
      if (!isAlive || isTls !== name.startsWith(HOST_PREFIX)) continue;
      return {
        state,
        redirectUri: r,
        returnTo: p,
        isConnection: (k & 1) !== 0,
        isSilent: (k & 2) !== 0,
        isStepUp: (k & 4) !== 0,
        scope: s,
        userMark: u,
        codeVerifier: v,
        data: d,
        frame: f && { challenge: f[0], grantId: f[1] },
        expiresAt,
        endCookie: `${name}=; Max-Age=0${cookieAttributes(visit.req, isTls)}`,
      };
    }
    return undefined;
  }

  /** Returns true if this browser has begun the login that a state belongs to with another strategy. */
  isOtherStrategys(visit: Visit, state: string): boolean {
    return tokensOfLogin(visit, state).some((token) => token !== this.#token);
  }
}

/** Returns the end of the name of a login's cookie. */
function cookieEnd(state: string): string {
  return `${LOGIN_PART}${hash('sha256', state, 'base64url').slice(0, 16)}`;
}

/** Returns the strategies with which this browser began the login of a state: their names as in {@link cookieToken}. */
export function tokensOfLogin({ cookies }: Visit, state: string): readonly string[] {
  const end = cookieEnd(state);
  const names = Object.keys(cookies).filter((name) => name.endsWith(end));
  return names.map((name) => name.slice(name.startsWith(HOST_PREFIX) ? HOST_PREFIX.length : 0, -end.length));
}

/** Returns name and value of the browser's pending logins, of any strategy, the oldest first. */
function pendingIn({ cookies }: Visit, hasHostPrefix: boolean): (readonly [name: string, value: string])[] {
  const pending: (readonly [string, string])[] = [];
  for (const [name, value = ''] of Object.entries(cookies)) {
    // Any sibling host can plant a cookie without the prefix: with https such cookies are not ours.
    if (LOGIN_COOKIE.test(name) && name.startsWith(HOST_PREFIX) === hasHostPrefix) pending.push([name, value]);
  }
  return pending.sort(([, a], [, b]) => (Number.parseInt(a, 36) || 0) - (Number.parseInt(b, 36) || 0));
}

/** Maximum number of used logins in memory, of about 95 bytes each. Beyond it the oldest is dropped. */
const MAX_USED = 50_000;

/** Time limit of one operation of the token store, in milliseconds. */
const STORE_LIMIT_MS = 5_000;

/** Minimum time between two sweeps for expired logins, in milliseconds. */
const MIN_SWEEP_MS = 1_000;

/** The callback that uses a login: while it runs, and afterwards if its outcome is unclaimed or the token store failed. */
interface Claim<Outcome> {
  readonly expiresAt: number;
  /** Other callbacks of the login, while this one runs. */
  waiting: (() => void)[] | undefined;
  /** An outcome that did not reach the browser. */
  unclaimed?: Outcome | undefined;
  /** True if the token store failed. It may have the mark of this callback all the same. */
  hasFailed?: boolean;
}

/**
 * Remembers used logins until they have expired by the clock of any host, so that each is used once: in this process, and
 * in all that share a token store with locks.
 */
export class UsedLogins<Outcome> {
  readonly #namespace: string;
  readonly #clock: () => number;
  /** By the bytes of the state as Latin-1, nearly in order of expiry: a claim, later its expiry in epoch seconds, which is smaller. */
  readonly #used = new Map<string, Claim<Outcome> | number>();
  /** The version of all marks of this object. */
  readonly #markVersion = randomInt(1, 2 ** 47);
  /** The token store with the latest mark. An application has one. */
  #markedIn: StoreAccess | undefined;
  /** Set while there are used logins. */
  #sweep: NodeJS.Timeout | undefined;

  /** @param options `namespace`: Passport's name for the strategy and its service, escaped, for ids of the token store. */
  constructor({ namespace, clock }: { readonly namespace: string; readonly clock: () => number }) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  /**
   * Finishes a login on its first use, and resolves to the outcome. Another use waits for the first: it takes over an
   * outcome that did not reach the browser, else it resolves to `undefined`.
   *
   * @param access The token store of the login's grant. If it has locks, processes share used logins through it.
   * @param finish Calls `leave` to leave its outcome to the next use, if the browser dropped this one.
   * @param resume Called before an outcome is taken over. Returns false if the browser dropped this use too.
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use(
    { state, expiresAt }: Pick<PendingLogin, 'state' | 'expiresAt'>,
    access: StoreAccess,
    finish: (leave: (outcome: Outcome) => void) => Promise<Outcome>,
    resume: () => boolean,
  ): Promise<Outcome | undefined> {
    // Its bytes: the state itself is a slice of the callback's URL, and would keep all of that in memory, with the code in it.
    const key = Buffer.from(state, 'base64url').toString('latin1');
    const former = this.#used.get(key);
    if (typeof former === 'number') return undefined;
    if (former && !former.hasFailed) {
      if (former.waiting) await new Promise<void>((resolve) => former.waiting?.push(resolve));
      const outcome = former.unclaimed;
      if (outcome === undefined || !resume()) return undefined;
      former.unclaimed = undefined;
      return outcome;
    }
    const waiting: (() => void)[] = [];
    const claim: Claim<Outcome> = { expiresAt, waiting };
    this.#used.set(key, claim);
    this.#dropExpired();
    let hasFailed = access.hasLock;
    try {
      const isFirst = !access.hasLock || (await this.#mark(access, state, expiresAt, former !== undefined));
      hasFailed = false;
      if (!isFirst) return undefined;
      return await finish((outcome) => {
        claim.unclaimed = outcome;
      });
    } finally {
      claim.hasFailed = hasFailed;
      claim.waiting = undefined;
      if (!hasFailed && claim.unclaimed === undefined) this.#used.set(key, Math.ceil(expiresAt / 1000));
      for (const proceed of waiting) proceed();
    }
  }

  /** Deletes the marks of expired logins. The other marks are still needed, and stay until the store drops them. */
  async close(): Promise<void> {
    const deletions = this.#dropExpired();
    clearTimeout(this.#sweep);
    await Promise.all(deletions);
  }

  /** Drops expired logins, and has one timer wait for the next to expire. Returns the deletions of their marks. */
  #dropExpired(): Promise<void>[] {
    const now = this.#clock();
    const deletions: Promise<void>[] = [];
    for (const [key, used] of this.#used) {
      const waitMs = (typeof used === 'number' ? used * 1000 : used.expiresAt) + CLOCK_SKEW_MS - now;
      if (waitMs > 0 && this.#used.size <= MAX_USED) {
        const sweep = () => {
          this.#sweep = undefined;
          this.#dropExpired();
        };
        this.#sweep ??= setTimeout(sweep, Math.max(waitMs, MIN_SWEEP_MS)).unref();
        break;
      }
      this.#used.delete(key);
      if (waitMs > 0 || !this.#markedIn) continue;
      const id = this.#markId(Buffer.from(key, 'latin1').toString('base64url'));
      // A mark that cannot be deleted expires in the store.
      deletions.push(this.#markedIn.use((store) => store.delete(id), 'login', STORE_LIMIT_MS).catch(() => {}));
    }
    return deletions;
  }

  /**
   * Leaves a mark in the token store. Returns false if another process has left one.
   *
   * @param isRetry True if a failed try of this process may have left the mark.
   */
  async #mark(access: StoreAccess, state: string, expiresAt: number, isRetry: boolean): Promise<boolean> {
    const id = this.#markId(state);
    const call = <R>(task: (store: TokenStore) => Promise<R>) => access.use(task, 'login', STORE_LIMIT_MS);
    const lock = await access.acquire(id);
    try {
      const mark = await call((store) => store.get(id));
      if (mark && !(isRetry && mark.version === this.#markVersion)) return false;
      await call((store) => store.set(id, { version: this.#markVersion, expiresAt, sealed: 'used' }));
    } finally {
      await lock.release();
    }
    this.#markedIn = access;
    return true;
  }

  #markId(state: string): string {
    return `${MARK_PREFIX}${this.#namespace}+${hash('sha256', state, 'base64url')}`;
  }
}
