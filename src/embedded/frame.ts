import type { IncomingMessage, ServerResponse } from 'node:http';
import { lostCookieCause, refuseUnpartitionedSession } from '../advice/session-cookie.js';
import { ApiClient, partsOf } from '../api/api-client.js';
import { ConfigurationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import type { FrameTarget } from '../login/pending-logins.js';
import { holdsToken, isLoginRoute } from '../middleware/login-redirect.js';
import type { FrameGate } from '../middleware/require-authorization.js';
import { passportRecordOf, sessionOf, setUser } from '../session/session.js';
import { isInFrame, isPrefetch, isSameOrigin, Visit } from '../session/visit.js';
import type { Runtime } from '../strategy/runtime.js';
import { type DetachedSession, detachSession } from './detached-session.js';
import { FrameLogins, type FramePopup } from './frame-logins.js';
import { type FrameSettings, misplaced } from './frame-options.js';
import {
  buttonPage,
  declinedPage,
  endPage,
  type FramePage,
  messagePage,
  REFUSED,
  sendFramePage,
} from './frame-pages.js';
import { holdResponse, keepOpener } from './held-response.js';

/** The parameter of the login route that names the frame which a popup logs in for. */
const HANDLE = 'frame';

/** Matches an address with a JSON Web Token: base64url of `{"…`, and two dots. Looks back from a dot, to read a long one once. */
const JWT = /\.(?<=eyJ[\w-]{12,}\.)[\w-]*\./;

/** Longest body that a frame sends, in characters. */
const MAX_BODY = 4 * 1024;

/** Requests that `embedded` has seen, and whether they name a user. */
const seen = new WeakMap<IncomingMessage, { readonly hadSession: boolean; readonly user: unknown }>();

/** What `embedded` does for one strategy. */
export class Frame implements FrameGate {
  readonly #runtime: Runtime;
  readonly #logins: FrameLogins;
  readonly #settings: FrameSettings;

  constructor(runtime: Runtime, settings: FrameSettings) {
    this.#runtime = runtime;
    this.#logins = FrameLogins.of(runtime);
    this.#settings = settings;
  }

  /** True if the frame's requests name their user. */
  get #identifies(): boolean {
    return this.#settings.identify !== undefined;
  }

  /** Serves the requests of popups and the codes that frames post, and identifies the user of other requests. */
  async serve(req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void): Promise<void> {
    const { path, login, identify } = this.#settings;
    const logins = this.#logins;
    const isOwn = (value: unknown) => value instanceof ApiClient && partsOf(value).context === this.#runtime.api;
    if (Object.values(req).some(isOwn)) throw misplaced('before apiClient(strategy)');
    const visit = new Visit(req);
    if (isLoginRoute(visit, path)) return this.#take(visit, res);
    const isLogin = isLoginRoute(visit, login) && visit.query.has(HANDLE);
    const target = isLogin ? this.#opened(visit) : logins.targetOf(visit);
    if (isLogin && !target) {
      const { words } = this.#settings;
      return sendFramePage(req, res, messagePage(403, words, words.stale));
    }
    if (target) {
      const session = detachSession(req);
      logins.note(req, target);
      const fail = (error: unknown) => next(ofStrategy(error, this.#runtime.settings.name));
      if (isLogin) keepOpener(res);
      else holdResponse(req, res, () => this.#endOf(req, res, session), fail);
      return next();
    }
    const user = identify && (await identified(identify, req));
    // A bad token may count as none. Addresses of ordinary pages hold hashes and slugs, which are no tokens.
    const isOfFrame = this.#identifies && isInFrame(req.headers);
    const isSuspect = isOfFrame || (this.#identifies && JWT.test(visit.browserUrl));
    if (user !== undefined || isSuspect) holdsToken.add(req);
    seen.set(req, { hadSession: sessionOf(req) !== undefined, user });
    // Without a valid token a frame has no user, even if the browser's session has one.
    if (user || isOfFrame) {
      if (sessionOf(req)) detachSession(req);
      setUser(req, user || undefined);
    }
    next();
  }

  requireOrder(req: IncomingMessage): void {
    const known = seen.get(req);
    if (!known && !this.#logins.popupOf(req)) throw misplaced('before the routes, by app.use()');
    if (known && !known.user && !known.hadSession && sessionOf(req)) throw misplaced('after the session');
  }

  isFor(req: IncomingMessage): boolean {
    return isInFrame(req.headers) || Boolean(seen.get(req)?.user);
  }

  isRefused(req: IncomingMessage, scope: readonly string[]): boolean {
    const refused = this.#logins.readRefused(new Visit(req).query.get(REFUSED) ?? '');
    return scope.some((name) => refused.includes(name));
  }

  answer(req: IncomingMessage, res: ServerResponse, scope: string | undefined, isStepUp: boolean): void {
    const { frameAncestors, login, path, words } = this.#settings;
    const { grants } = this.#runtime;
    const user = seen.get(req)?.user;
    if (this.#identifies && !user) throw new NotAuthorizedError('The token of this frame names no user.');
    if (!this.#identifies) refuseUnpartitionedSession(new Visit(req));
    const { handle, verifier } = this.#logins.create(user ? grants.newId(req, user) : undefined, scope, isStepUp);
    const url = `${login}${login.includes('?') ? '&' : '?'}${HANDLE}=${handle}`;
    sendFramePage(req, res, buttonPage(words, frameAncestors, { url, path, verifier }));
  }

  /** Returns the frame that a popup logs in for: none, unless a page of the own origin has opened it as a window. */
  #opened({ req, headers, query }: Visit): FrameTarget | undefined {
    const { 'sec-fetch-dest': dest = 'document', 'sec-fetch-site': site = 'same-origin' } = headers;
    if (dest !== 'document' || site !== 'same-origin' || isPrefetch(headers) || req.method !== 'GET') return undefined;
    return this.#logins.read(query.get(HANDLE) ?? '');
  }

  /** Returns the page that ends a popup; `undefined` if its login has failed or was refused, as the application says. */
  #endOf(
    req: IncomingMessage,
    { statusCode }: ServerResponse,
    session: DetachedSession,
  ): Promise<FramePage | undefined> | undefined {
    const { words } = this.#settings;
    const { grants } = this.#runtime;
    const logins = this.#logins;
    const popup = logins.popupOf(req);
    if (popup?.outcome === 'other')
      return Promise.resolve(messagePage(403, words, words.otherAccount, '<small>ERR_OTHER_ACCOUNT</small>'));
    if (popup?.outcome === 'declined')
      return Promise.resolve(declinedPage(words, { refused: logins.sealRefused(popup) }));
    if (popup?.outcome !== 'stored') return undefined;
    const isInSession = () =>
      passportRecordOf(req) !== undefined || (grants.idIsInSession && grants.idOf(req) !== undefined);
    const isLoggedIn = () => (this.#identifies ? !session.hasEnded : isInSession());
    if (isLoggedIn() && statusCode < 400) return this.#handOver(req, popup, session, isLoggedIn);
    logins.discard(req, popup, this.#identifies);
    return undefined;
  }

  /**
   * Returns the page that brings a popup's session to its frame; `undefined` if the application has refused the login until it
   * was stored. A later refusal makes the code worthless.
   *
   * @throws TokenStoreError if the session cannot be stored
   */
  async #handOver(
    req: IncomingMessage,
    popup: FramePopup,
    session: DetachedSession,
    isLoggedIn: () => boolean,
  ): Promise<FramePage | undefined> {
    const { words } = this.#settings;
    const logins = this.#logins;
    const refused = logins.sealRefused(popup);
    const discard = () => logins.discard(req, popup, this.#identifies);
    const { maxAge } = session;
    const { cookie: _settings, ...content } = sessionOf(req) ?? {};
    try {
      const handOver = { content, ...(maxAge !== undefined && { maxAge }) };
      // Also awaited without one: the route may go on after its answer.
      const issued = await (this.#identifies ? undefined : logins.issue(req, popup.target, handOver));
      const withdraw = issued?.withdraw ?? discard;
      if (isLoggedIn() && (issued || this.#identifies)) {
        session.onChange = () => isLoggedIn() || withdraw();
        return endPage(words, { code: issued?.code, refused });
      }
      withdraw();
    } catch (error) {
      discard();
      throw error;
    }
    discard();
    if (!isLoggedIn()) return undefined;
    const limit = '<small>For developers: at most 1 MB of req.session reaches the frame.</small>';
    return messagePage(500, words, words.tooLarge, limit);
  }

  /** Takes the code that the popup gave to the frame. A GET says whether the cookie of the new session came back. */
  async #take(visit: Visit, res: ServerResponse): Promise<void> {
    const { req, headers, host } = visit;
    res.setHeader('Cache-Control', 'no-store');
    const isFrame = isSameOrigin(headers, host);
    if (req.method === 'GET' && isFrame) {
      if (passportRecordOf(req) !== undefined || this.#runtime.grants.referenceOf(req)) return sendStatus(res, 204);
      const cause = lostCookieCause(visit) ?? 'The application may be in a frame whose cookies the browser blocks.';
      const message = `The frame was logged in, but its session cookie did not come back. ${cause}`;
      throw new ConfigurationError(message, { code: 'ERR_SESSION_COOKIE' });
    }
    if (req.method !== 'POST') {
      res.setHeader('Allow', 'POST');
      return sendStatus(res, 405);
    }
    if (!isFrame) return sendStatus(res, 403);
    if (!sessionOf(req)) throw misplaced('after the session');
    const body = await readBody(req);
    if (body === TOO_LONG) return sendStatus(res, 413);
    const { code, verifier } = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
    if (typeof code !== 'string' || typeof verifier !== 'string') return sendStatus(res, 400);
    sendStatus(res, (await this.#logins.take(req, code, verifier)) ? 204 : 403);
  }
}

function sendStatus(res: ServerResponse, status: number): void {
  res.statusCode = status;
  res.end();
}

/** Errors of jose and jsonwebtoken for a token that is expired, forged or no token. */
const TOKEN_ERROR = /^ERR_J(?:WT|WS|WE|WK|WKS|OSE)_|^(?:JsonWebToken|TokenExpired|NotBefore)Error$/;

/** Returns the user of a request's token; `undefined` without one, and false if the token is refused. */
async function identified(identify: NonNullable<FrameSettings['identify']>, req: IncomingMessage): Promise<unknown> {
  try {
    return (await identify(req as IncomingMessage & Express.Request)) || undefined;
  } catch (error) {
    const { code, name }: { readonly code?: unknown; readonly name?: unknown } = Object(error);
    if (TOKEN_ERROR.test(String(code)) || TOKEN_ERROR.test(String(name))) return false;
    throw error;
  }
}

/** Stands for a body that is too long. */
const TOO_LONG = Symbol('too long');

/** Reads the JSON body of a request, unless a parser of the application has done so. Returns `undefined` if it is none. */
async function readBody(req: IncomingMessage & { readonly body?: unknown }): Promise<unknown> {
  const { body = '' } = req;
  const isParsed = typeof body === 'object' && body !== null && !Buffer.isBuffer(body);
  // Parsers of Express 4 leave an empty object of a body that they do not read.
  if (isParsed && Object.keys(body).length > 0) return body;
  let text = isParsed ? '' : String(body);
  if (!req.readableEnded && text === '') {
    req.setEncoding('utf8');
    // Reads to the end: a loop that is left destroys the connection, before the answer. Node's requestTimeout ends one without end.
    for await (const chunk of req) if (text.length <= MAX_BODY) text += chunk;
    if (text.length > MAX_BODY) return TOO_LONG;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
