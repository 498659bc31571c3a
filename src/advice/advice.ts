import { ConfigurationError, TokenStoreError } from '../errors.js';
import type { RequestClients } from '../session/request-clients.js';
import type { RequestGrants } from '../session/request-grants.js';
import { sessionOf } from '../session/session.js';
import { isInFrame, type Visit } from '../session/visit.js';
import { hostMismatch, OVER_HTTP } from './host-mismatch.js';
import type { OpenStrategy } from './open-strategies.js';
import {
  lostCookieCause,
  refuseStrictSession,
  refuseUnpartitionedSession,
  refuseUnsetSession,
} from './session-cookie.js';

/** Options that Passport, its wrappers, or this strategy read. */
const READ_OPTIONS = new Set([
  ...['assignProperty', 'authInfo', 'authorizationParams', 'callback', 'callbackURL', 'defaultStrategy'],
  ...['failWithError', 'failureFlash', 'failureMessage', 'failureRedirect', 'keepSessionInfo', 'pauseStream'],
  ...['property', 'scope', 'session', 'state', 'successFlash', 'successMessage', 'successRedirect'],
  ...['successReturnToOrRedirect', 'userProperty'],
]);

/** Maximum number of logins whose host names are remembered. */
const MAX_MISMATCHES = 1_000;

/** Finds mistakes in the set-up of an application when a login begins and at its callback. No other request pays for it. */
export class Advice {
  readonly #strategy: OpenStrategy;
  readonly #grants: RequestGrants;
  readonly #clients: RequestClients;
  /** Codes, and options, of past warnings. */
  readonly #warned = new Set<string>();
  /** Why a login will be lost, by its state. In the order of their start. */
  readonly #hostMessages = new Map<string, string>();

  constructor(strategy: OpenStrategy, grants: RequestGrants, clients: RequestClients) {
    this.#strategy = strategy;
    this.#grants = grants;
    this.#clients = clients;
  }

  /** True if another open strategy of this process has the same name. */
  get #hasNamesakes(): boolean {
    return this.#strategy.namesakes.strategies.size > 1;
  }

  /** Throws if a login that begins could not finish. @throws ConfigurationError, and what {@link checkRoute} throws */
  beforeLogin(visit: Visit, routeOptions: object): void {
    const { req } = visit;
    this.#strategy.refuseSharedCallback(req);
    // The options of the callback's route are not known here.
    this.checkRoute(visit, routeOptions, { logsIn: false, redirects: false });
    if (this.#clients.early.has(req) && this.#grants.canFindGrant(req))
      throw new ConfigurationError(
        'apiClient(strategy) is mounted before the session and Passport, so it finds no grant: mount express-session, then passport.session(), then apiClient(strategy).',
        { code: 'ERR_MIDDLEWARE_ORDER' },
      );
    refuseUnsetSession(req);
    refuseUnpartitionedSession(visit);
  }

  /** Warns if the browser will not send the cookie of a login to its callback, and remembers why: see {@link hostMismatch}. */
  noteHosts(visit: Visit, redirectUri: string, state: string, isRelative: boolean): void {
    const { message, warning } = hostMismatch(visit, redirectUri, isRelative) ?? {};
    if (warning !== undefined) this.warnOnce('ERR_LOGIN_HOST', warning);
    if (message === undefined) return;
    this.#hostMessages.set(state, message);
    const [oldest] = this.#hostMessages.keys();
    if (this.#hostMessages.size > MAX_MISMATCHES && oldest !== undefined) this.#hostMessages.delete(oldest);
  }

  /**
   * Throws if a login could not keep its grant or user in the request's session. Warns of options that nothing reads, and of a
   * session that another strategy of the same name uses.
   *
   * @param login `logsIn`: Passport logs the user in with a session. `redirects`: the route leads from a login to a page of
   *   the application.
   * @throws ConfigurationError; TokenStoreError if earlier requests had a session
   */
  checkRoute(
    { req, headers }: Visit,
    options: object,
    { logsIn, redirects }: { readonly logsIn: boolean; readonly redirects: boolean },
  ): void {
    for (const [name, value] of Object.entries(options)) {
      if (READ_OPTIONS.has(name) || value === undefined || !/^\w{1,64}$/.test(name)) continue;
      const message = `passport.authenticate: this strategy ignores the option ${name}. A parameter of the authorization request is set as { authorizationParams: { ${name}: … } }.`;
      this.warnOnce('ERR_IGNORED_OPTION', message, name);
    }
    const { identity } = this.#strategy;
    const grantId = this.#hasNamesakes ? this.#grants.referenceOf(req) : undefined;
    if (grantId !== undefined && this.#strategy.isOfAnother(grantId)) {
      const message = `Two strategies for different services have the name '${identity.name}' and use one session. Set the option name of one of them to another name: the name given to passport.use does not set it.`;
      this.warnOnce('ERR_STRATEGY_NAME', message);
    }
    if (!this.#grants.idIsInSession && !logsIn) return;
    const session = sessionOf(req);
    if (!session && this.#grants.hasSeenSession)
      // express-session calls the next handler without a session while its store is disconnected.
      throw new TokenStoreError(
        'The request has no session, although earlier requests had one: the session store is disconnected.',
        { code: 'ERR_SESSION_STORE' },
      );
    if (!session)
      throw new ConfigurationError(
        'The request has no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.',
        { code: 'ERR_NO_SESSION' },
      );
    const isFixed = Object.getOwnPropertyDescriptor(session, 'save')?.configurable === false;
    if (typeof session.regenerate !== 'function' && (isFixed || !Object.isExtensible(session)))
      throw new ConfigurationError(
        'Passport cannot log in with this session: it has no method regenerate, and its save cannot be replaced (iron-session). Use express-session, or cookie-session with the option tokenStore.',
        { code: 'ERR_SESSION_TYPE' },
      );
    if (logsIn && redirects && headers['sec-fetch-site'] === 'cross-site') refuseStrictSession(req);
  }

  /** Returns the message for a callback whose login is unknown: `message`, and the cause if the request shows it. */
  explainUnknownLogin(visit: Visit, state: string | undefined, message: string): string {
    const mismatch = this.#hostMessages.get(state ?? '');
    if (mismatch !== undefined) {
      if (mismatch !== OVER_HTTP) this.warnOnce('ERR_LOGIN_HOST', mismatch);
      return mismatch;
    }
    // A callback in a frame most likely lost the cookie of its login.
    const cause = isInFrame(visit.headers) ? lostCookieCause(visit) : undefined;
    return cause === undefined ? message : `${message} ${cause}`;
  }

  /** Forgets a login, which was not lost, and remembers which service issued the grant of the session. */
  afterLogin(state: string, grantId: string): void {
    this.#hostMessages.delete(state);
    if (this.#grants.idIsInSession && this.#hasNamesakes) this.#strategy.remember(grantId);
  }

  /** Warns of a mistake once. @param option The one that is at fault: each is warned of. */
  warnOnce(code: string, message: string, option = ''): void {
    if (this.#warned.has(code + option)) return;
    this.#warned.add(code + option);
    process.emitWarning(message, { code });
  }
}
