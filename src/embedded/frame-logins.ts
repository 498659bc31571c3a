import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isRecent } from '../clock.js';
import { AuthorizationError } from '../errors.js';
import { isRandomGrantId } from '../grants/grant.js';
import type { FrameTarget, PendingLogins } from '../login/pending-logins.js';
import type { CookieSeal } from '../session/cookie-seal.js';
import type { RequestGrants } from '../session/grant-reference.js';
import { originalUrl, queryOf } from '../session/incoming-request.js';
import { emptySession, polyfillSessionMethods, regenerateSession, saveSession, sessionOf } from '../session/session.js';
import { CODE_LIFETIME_MS, challengeOf, type HandOver, type HandOvers } from './hand-overs.js';

/** A request of a popup. */
export interface FramePopup {
  readonly target: FrameTarget;
  /** How its login ended so far. `other`: another user than the frame's has logged in. */
  outcome: 'pending' | 'stored' | 'other' | 'declined';
  /** Scopes that its login has asked for, and the user has not granted. */
  refused: readonly string[];
  /** Of the grant that its login has stored. */
  grantId?: string;
}

/** What logins of frames need of their strategy. */
export interface FrameLoginsOptions {
  readonly name: string;
  /** All processes of the application have its secret. */
  readonly seal: CookieSeal;
  readonly grants: RequestGrants;
  readonly pendingLogins: PendingLogins;
  readonly handOvers: HandOvers;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** What a handle holds, in this order. `at`: epoch milliseconds. */
type Handle = readonly [at: number, challenge: string, grantId: string | 0, scope: string | 0, isStepUp: boolean];

/** How long the address of a popup works, in milliseconds: as long as a login that it begins. */
const HANDLE_MS = 10 * 60 * 1000;

/** How long scopes count as refused in the frame, as they do in a tab. */
const REFUSED_MS = 60 * 1000;

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
    const { seal, clock } = this.#options;
    const content: Handle = [clock(), challengeOf(verifier), grantId ?? 0, scope ?? 0, isStepUp];
    return { verifier, handle: seal.seal('handle', JSON.stringify(content)) };
  }

  /** Returns the frame that a handle names; `undefined` if it was not created here, or more than ten minutes ago. */
  read(handle: string): FrameTarget | undefined {
    const { seal, clock } = this.#options;
    const text = seal.open('handle', handle);
    if (text === undefined) return undefined;
    const [at, challenge, grantId, scope, isStepUp] = JSON.parse(text) as Handle;
    if (!isRecent(at, HANDLE_MS, clock())) return undefined;
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
    popup.grantId = grantId;
    if (popup.outcome === 'stored') return;
    throw new AuthorizationError('Another user has logged in than the user of the frame. Nothing was stored.', {
      code: 'ERR_OTHER_ACCOUNT',
      status: 403,
    });
  }

  /**
   * Returns a code for a session. After a minute, deletes the session and discards its grant if no frame has taken them: nothing
   * would refer to the grant. Without locks the token store cannot tell what other processes took, and its `ttl` ends the grant.
   *
   * @returns `undefined` if the session is larger than 1 MB
   * @throws TokenStoreError if the session cannot be stored
   */
  async issue(req: IncomingMessage, { challenge }: FrameTarget, session: HandOver): Promise<string | undefined> {
    const { name, grants, handOvers } = this.#options;
    const manager = grants.managerFor(req);
    const code = await handOvers.put(manager.access, challenge, session);
    if (code === undefined) return undefined;
    const discardUntaken = async () => {
      const untaken = await handOvers.take(manager.access, code, undefined);
      const grantId = untaken?.content[name];
      if (isRandomGrantId(grantId) && manager.access.hasLock) await manager.discard(grantId);
    };
    setTimeout(() => void discardUntaken().catch(() => {}), CODE_LIFETIME_MS).unref();
    return code;
  }

  /** Discards the grant of a popup whose login the application has refused, unless the grant may be that of the user's tabs. */
  discard(req: IncomingMessage, { grantId }: FramePopup, isOfFrame: boolean): void {
    if (grantId === undefined || !(isOfFrame || isRandomGrantId(grantId))) return;
    this.#options.grants
      .managerFor(req)
      .discard(grantId)
      .catch(() => {});
  }

  /**
   * Gives the request a new session, with what a code names.
   *
   * @returns false if the code is refused
   * @throws TokenStoreError if a store fails
   */
  async take(req: IncomingMessage, code: string, verifier: string): Promise<boolean> {
    const { name, grants, handOvers } = this.#options;
    const before = sessionOf(req);
    if (!before) return false;
    const manager = grants.managerFor(req);
    const taken = await handOvers.take(manager.access, code, verifier);
    if (!taken) return false;
    const former = grants.referenceOf(req);
    polyfillSessionMethods(before, false);
    emptySession(before);
    const session = Object.assign(await regenerateSession(req, before), taken.content);
    const { cookie } = session;
    if ('maxAge' in taken && typeof cookie === 'object' && cookie !== null) Reflect.set(cookie, 'maxAge', taken.maxAge);
    await saveSession(session);
    if (former !== undefined && former !== taken.content[name]) manager.discard(former).catch(() => {});
    return true;
  }
}
