import { hash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isRecent } from '../clock.js';
import { AuthorizationError } from '../errors.js';
import { GrantCodec, isRandomGrantId } from '../grants/grant.js';
import { loginsOf } from '../login/authenticate.js';
import type { Popup } from '../login/login-context.js';
import type { FrameTarget } from '../login/pending-logins.js';
import { CookieSeal } from '../session/cookies.js';
import { emptySession, polyfillSessionMethods, regenerateSession, saveSession, sessionOf } from '../session/session.js';
import type { Visit } from '../session/visit.js';
import type { Runtime } from '../strategy/runtime.js';
import { CODE_LIFETIME_MS, challengeOf, type HandOver, HandOvers } from './hand-overs.js';

/** A popup, and how its login ended so far. */
export class FramePopup implements Popup {
  readonly target: FrameTarget;
  /** `other`: another user than the frame's logged in. */
  outcome: 'pending' | 'stored' | 'other' | 'declined' = 'pending';
  /** Scopes that its login asked for, and the user did not grant. */
  refused: readonly string[] = [];
  /** Of the grant that its login stored. */
  grantId: string | undefined;

  constructor(target: FrameTarget) {
    this.target = target;
  }

  admit(grantId: string): void {
    const expected = this.target.grantId;
    this.outcome = expected === undefined || expected === grantId ? 'stored' : 'other';
    this.grantId = grantId;
    if (this.outcome === 'stored') return;
    throw new AuthorizationError('Another user has logged in than the user of the frame. Nothing was stored.', {
      code: 'ERR_OTHER_ACCOUNT',
      status: 403,
    });
  }

  noteRefused(scope: readonly string[], isDeclined: boolean): void {
    this.refused = scope;
    if (isDeclined) this.outcome = 'declined';
  }
}

/** What a handle holds, in this order. `at`: epoch milliseconds. */
type Handle = readonly [at: number, challenge: string, grantId: string | 0, scope: string | 0, isStepUp: boolean];

/** How long the address of a popup works, in milliseconds: as long as a login that it begins. */
const HANDLE_MS = 10 * 60 * 1000;

/** How long scopes count as refused in the frame, as they do in a tab. */
const REFUSED_MS = 60 * 1000;

/** By the runtime of their strategy. */
const installed = new WeakMap<Runtime, FrameLogins>();

/**
 * Logins that a popup does for a frame, whose consent page cannot be framed.
 *
 * The popup shares its cookies with the user's tabs, the frame does not: so a code carries the new session from the one to
 * the other, as an authorization code does (RFC 6749, 4.1), bound to a verifier that the frame alone has (RFC 7636).
 */
export class FrameLogins {
  readonly #runtime: Runtime;
  /** All processes of the application have its secret. */
  readonly #seal: CookieSeal;
  readonly #handOvers: HandOvers;
  readonly #popups = new WeakMap<IncomingMessage, FramePopup>();

  constructor(runtime: Runtime) {
    const { authUrl, clientID, clientSecret, callbackURL, clock, encryptionKeys, name: strategy } = runtime.settings;
    this.#runtime = runtime;
    const application = hash('sha256', JSON.stringify([authUrl, clientID, callbackURL]), 'base64url');
    this.#seal = new CookieSeal(`frame ${application}`, clientSecret);
    this.#handOvers = new HandOvers({ strategy, callbackURL, codec: new GrantCodec(encryptionKeys), clock });
  }

  /** Returns those of a strategy, and installs them when they are first asked for. */
  static of(runtime: Runtime): FrameLogins {
    const known = installed.get(runtime);
    if (known) return known;
    const logins = new FrameLogins(runtime);
    installed.set(runtime, logins);
    runtime.popups = logins.#popups;
    return logins;
  }

  #now(): number {
    return this.#runtime.settings.clock();
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
    const content: Handle = [this.#now(), challengeOf(verifier), grantId ?? 0, scope ?? 0, isStepUp];
    return { verifier, handle: this.#seal.seal('handle', JSON.stringify(content)) };
  }

  /** Returns the frame that a handle names; `undefined` if it was not created here, or more than ten minutes ago. */
  read(handle: string): FrameTarget | undefined {
    const text = this.#seal.open('handle', handle);
    if (text === undefined) return undefined;
    const [at, challenge, grantId, scope, isStepUp] = JSON.parse(text) as Handle;
    if (!isRecent(at, HANDLE_MS, this.#now())) return undefined;
    return { challenge, grantId: grantId || undefined, scope: scope || undefined, isStepUp };
  }

  /** Returns the frame that the login of a callback is for. */
  targetOf(visit: Visit): FrameTarget | undefined {
    const state = visit.query.get('state');
    if (state === null) return undefined;
    return loginsOf(this.#runtime).pendingLogins.find(visit, state)?.frame;
  }

  /** Notes that a popup has sent a request. */
  note(req: IncomingMessage, target: FrameTarget): void {
    this.#popups.set(req, new FramePopup(target));
  }

  /** Returns the popup that has sent a request. */
  popupOf(req: IncomingMessage): FramePopup | undefined {
    return this.#popups.get(req);
  }

  /** Returns the scopes that a popup's user has just refused, for the address that its frame loads; `undefined` if there are none. */
  sealRefused({ refused }: FramePopup): string | undefined {
    if (refused.length === 0) return undefined;
    return this.#seal.seal('refused', JSON.stringify([this.#now(), ...refused]));
  }

  /** Returns the scopes that were refused a moment ago, as the frame's address says. */
  readRefused(sealed: string): readonly string[] {
    const text = this.#seal.open('refused', sealed);
    if (text === undefined) return [];
    const [at, ...scope] = JSON.parse(text) as [number, ...string[]];
    return isRecent(at, REFUSED_MS, this.#now()) ? scope : [];
  }

  /**
   * Returns a code for a session. `withdraw`, or a minute, deletes the session and discards its grant if no frame has taken them:
   * nothing would refer to the grant. Without locks another process may have taken them, so the grant stays until its `ttl`.
   *
   * @returns `undefined` if the session is larger than 1 MB
   * @throws TokenStoreError if the session cannot be stored
   */
  async issue(
    req: IncomingMessage,
    { challenge }: FrameTarget,
    session: HandOver,
  ): Promise<{ readonly code: string; readonly withdraw: () => void } | undefined> {
    const { settings, managers } = this.#runtime;
    const manager = managers.for(req);
    const code = await this.#handOvers.put(manager.access, challenge, session);
    if (code === undefined) return undefined;
    const discardUntaken = async () => {
      const untaken = await this.#handOvers.take(manager.access, code, undefined);
      const grantId = untaken?.content[settings.name];
      if (isRandomGrantId(grantId) && manager.access.hasLock) await manager.discard(grantId);
    };
    const withdraw = () => void discardUntaken().catch(() => {});
    setTimeout(withdraw, CODE_LIFETIME_MS).unref();
    return { code, withdraw };
  }

  /** Discards the grant of a popup whose login the application has refused, unless the grant may be that of the user's tabs. */
  discard(req: IncomingMessage, { grantId }: FramePopup, isOfFrame: boolean): void {
    if (grantId === undefined || !(isOfFrame || isRandomGrantId(grantId))) return;
    this.#runtime.managers
      .for(req)
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
    const { settings, grants, managers } = this.#runtime;
    const before = sessionOf(req);
    if (!before) return false;
    const manager = managers.for(req);
    const taken = await this.#handOvers.take(manager.access, code, verifier);
    if (!taken) return false;
    const former = grants.referenceOf(req);
    polyfillSessionMethods(before, false);
    emptySession(before);
    const session = Object.assign(await regenerateSession(req, before), taken.content);
    const { cookie } = session;
    if ('maxAge' in taken && typeof cookie === 'object' && cookie !== null) Reflect.set(cookie, 'maxAge', taken.maxAge);
    await saveSession(session);
    if (former !== undefined && former !== taken.content[settings.name]) manager.discard(former).catch(() => {});
    return true;
  }
}
