import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { CLOCK_SKEW_MS, isRecent, remainingMs } from '../clock.js';
import { AuthorizationError } from '../errors.js';
import { isRandomGrantId } from '../grants/grant.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { CookieSeal } from '../request/cookie-seal.js';
import type { RequestGrants } from '../request/grant-reference.js';
import { originalUrl, queryOf } from '../request/incoming-request.js';
import { emptySession, polyfillSessionMethods, regenerateSession, saveSession, sessionOf } from '../request/session.js';
import type { FrameTarget, PendingLogins } from './pending-logins.js';
import type { UsedLogins } from './used-logins.js';

/** A request of a popup. */
export interface FramePopup {
  readonly target: FrameTarget;
  /** How its login ended so far. `other`: another user than the frame's has logged in. */
  outcome: 'pending' | 'stored' | 'other' | 'declined';
  /** Scopes that its login has asked for, and the user has not granted. */
  refused: readonly string[];
}

/** What a session holds: JSON by name. */
type Content = Readonly<Record<string, unknown>>;

/** What a code holds, in this order. */
type Sealed = readonly [id: string, challenge: string, expiresAt: number, content: Content];

/** What logins of frames need of their strategy. */
export interface FrameLoginsOptions {
  readonly name: string;
  /** All processes of the application have its secret. */
  readonly seal: CookieSeal;
  readonly grants: RequestGrants;
  readonly pendingLogins: PendingLogins;
  readonly usedLogins: UsedLogins<unknown>;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

const LIFETIME_MS = 60 * 1000;

/** How long scopes count as refused in the frame, as they do in a tab. */
const REFUSED_MS = 60 * 1000;

/** How long it is known that a code was taken: well beyond the moment at which its issuer asks. */
const MARK_LIFETIME_MS = 5 * LIFETIME_MS;

/**
 * Logins that a popup does for a frame, whose consent page cannot be framed.
 *
 * The popup shares its cookies with the user's tabs, the frame does not: so a code carries the new session from the one to
 * the other, as an authorization code does (RFC 6749, 4.1), bound to a verifier that the frame alone has (RFC 7636).
 */
export class FrameLogins {
  readonly #options: FrameLoginsOptions;
  readonly #popups = new WeakMap<IncomingMessage, FramePopup>();

  constructor(options: FrameLoginsOptions) {
    this.#options = options;
  }

  /**
   * Returns a new verifier, and a handle for the address of the popup, which names the frame and the scopes that it needs.
   *
   * @param isStepUp True if the frame is logged in, and lacks scopes.
   */
  create(
    grantId: string | undefined,
    scope: string | undefined,
    isStepUp: boolean,
  ): { readonly verifier: string; readonly handle: string } {
    const verifier = randomBytes(32).toString('base64url');
    const content = JSON.stringify([challengeOf(verifier), grantId ?? 0, scope ?? 0, isStepUp]);
    return { verifier, handle: this.#options.seal.seal('handle', content) };
  }

  /** Returns the frame that a handle names; `undefined` if it was not created here. */
  read(handle: string): FrameTarget | undefined {
    const text = this.#options.seal.open('handle', handle);
    if (text === undefined) return undefined;
    const [challenge, grantId, scope, isStepUp] = JSON.parse(text) as [string, string | 0, string | 0, boolean];
    return { challenge, grantId: grantId || undefined, scope: scope || undefined, isStepUp };
  }

  /** Returns the frame that the login of a callback is for. */
  targetOf(req: IncomingMessage): FrameTarget | undefined {
    const state = queryOf(originalUrl(req)).get('state');
    return state === null ? undefined : this.#options.pendingLogins.find(req, state)?.frame;
  }

  /** Notes that a popup has sent a request. */
  note(req: IncomingMessage, target: FrameTarget): FramePopup {
    const popup: FramePopup = { target, outcome: 'pending', refused: [] };
    this.#popups.set(req, popup);
    return popup;
  }

  /** Returns the popup that has sent a request. */
  popupOf(req: IncomingMessage): FramePopup | undefined {
    return this.#popups.get(req);
  }

  /** Returns the scopes that a popup's user has just refused, for the address that its frame loads; `undefined` if there are none. */
  sealRefused({ refused }: FramePopup): string | undefined {
    const { seal, clock } = this.#options;
    return refused.length > 0 ? seal.seal('refused', JSON.stringify([clock(), ...refused])) : undefined;
  }

  /** Returns the scopes that a frame's address tells to be refused a moment ago. */
  readRefused(sealed: string): readonly string[] {
    const { seal, clock } = this.#options;
    const text = seal.open('refused', sealed);
    if (text === undefined) return [];
    const [at, ...scope] = JSON.parse(text) as [number, ...string[]];
    return isRecent(at, REFUSED_MS, clock()) ? scope : [];
  }

  /**
   * Notes that the grant of a popup's login is about to be stored.
   *
   * @throws AuthorizationError if the frame's requests tell of another user
   */
  admit(popup: FramePopup, grantId: string): void {
    const expected = popup.target.grantId;
    popup.outcome = expected === undefined || expected === grantId ? 'stored' : 'other';
    if (popup.outcome === 'stored') return;
    throw new AuthorizationError('Another user has logged in than the user of the frame. Nothing was stored.', {
      code: 'ERR_OTHER_ACCOUNT',
      status: 403,
    });
  }

  /**
   * Returns a code for the session of a popup's request. Discards its grant after two minutes, if no frame has taken the
   * code: nothing would refer to it. Without locks the token store cannot tell what other processes took, and its `ttl` ends
   * the grant.
   */
  issue(req: IncomingMessage, { challenge }: FrameTarget): string {
    const { seal, clock, name, grants } = this.#options;
    const content = { ...sessionOf(req) };
    const id = randomBytes(32).toString('base64url');
    const expiresAt = clock() + LIFETIME_MS;
    const sealed: Sealed = [id, challenge, expiresAt, content];
    const grantId = content[name];
    const manager = grants.managerFor(req);
    if (isRandomGrantId(grantId) && manager.access.hasLock) {
      const discardUntaken = async () => {
        // After a pause of this process the mark of another one may be gone.
        if (clock() >= expiresAt + 2 * CLOCK_SKEW_MS) return;
        if (await this.#use(id, expiresAt, manager)) await manager.discard(grantId);
      };
      setTimeout(() => void discardUntaken().catch(() => {}), LIFETIME_MS + CLOCK_SKEW_MS).unref();
    }
    return seal.seal('code', JSON.stringify(sealed));
  }

  /**
   * Gives the request a new session, with what a code holds. A code that does not belong to the verifier, or is too old, is
   * not used up.
   *
   * @returns false if the code is refused
   * @throws TokenStoreError if the session or the mark of the code cannot be saved
   */
  async take(req: IncomingMessage, code: string, verifier: string): Promise<boolean> {
    const { seal, clock, name, grants } = this.#options;
    const text = seal.open('code', code);
    const before = sessionOf(req);
    if (text === undefined || !before) return false;
    const [id, challenge, expiresAt, content] = JSON.parse(text) as Sealed;
    const isAlive = remainingMs(expiresAt, clock(), LIFETIME_MS + CLOCK_SKEW_MS) > 0;
    if (!isAlive || challenge !== challengeOf(verifier)) return false;
    const manager = grants.managerFor(req);
    if (!(await this.#use(id, expiresAt, manager))) return false;
    const former = grants.referenceOf(req);
    polyfillSessionMethods(before, false);
    emptySession(before);
    const session = await regenerateSession(req, before);
    await saveSession(Object.assign(session, content));
    if (former !== undefined && former !== content[name]) manager.discard(former).catch(() => {});
    return true;
  }

  /** Uses a code up. Returns false if that was done before, in any process where the token store has locks. */
  async #use(id: string, expiresAt: number, { access }: GrantManager): Promise<boolean> {
    const { usedLogins } = this.#options;
    const { isFirst, callback } = await usedLogins.use(id, expiresAt + MARK_LIFETIME_MS, access);
    if (isFirst) usedLogins.end(id, callback, undefined);
    return isFirst;
  }
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}
