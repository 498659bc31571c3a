import { ConfigurationError, TokenStoreError } from '../errors.js';
import type { RequestGrants } from '../session/grant-reference.js';
import type { RequestClients } from '../session/request-clients.js';
import { sessionOf } from '../session/session.js';
import type { Visit } from '../session/visit.js';
import { HostMismatches } from './host-mismatches.js';
import type { LoopGuard } from './loop-guard.js';
import { OpenStrategy, type StrategyIdentity } from './open-strategies.js';
import {
  refuseFixedSession,
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

/** What mistakes are found with. */
export interface AdviceOptions {
  readonly strategy: StrategyIdentity;
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
  readonly loops: LoopGuard;
}

/**
 * Finds mistakes in the set-up of an application, and explains them to its developer: when a strategy is created, when a login
 * begins, and at its callback. No other request pays for it.
 */
export class Advice {
  /** Finds logins that lead to the next one. */
  readonly loops: LoopGuard;
  /** Finds logins whose cookie the browser keeps for another host. */
  readonly hosts: HostMismatches = new HostMismatches((message) => this.warnOnce('host', 'ERR_LOGIN_HOST', message));
  readonly #options: AdviceOptions;
  readonly #strategy: OpenStrategy;
  /** Codes and options that were warned of. */
  readonly #warned = new Set<string>();

  constructor(options: AdviceOptions) {
    this.#options = options;
    this.loops = options.loops;
    this.#strategy = new OpenStrategy(options.strategy);
  }

  /**
   * Throws if a login that begins could not end.
   *
   * @throws ConfigurationError; TokenStoreError if earlier requests had a session
   */
  beforeLogin(visit: Visit): void {
    const { grants, clients } = this.#options;
    const { req } = visit;
    this.#strategy.refuseSharedCallback(req);
    // The options of the callback's route are not known here.
    this.#requireSession(visit, grants.idIsInSession);
    if (clients.wasAttachedEarly(req) && grants.canFindGrant(req)) throw misplacedClient();
    if (sessionOf(req)) refuseUnsetSession(req);
    refuseUnpartitionedSession(visit);
  }

  /**
   * Throws if the session of a callback's login would be lost.
   *
   * @param needsSession True if Passport logs the user in with a session.
   * @param redirects True if the callback leads to a page of the application.
   * @throws ConfigurationError; TokenStoreError if earlier requests had a session
   */
  beforeCallback(visit: Visit, needsSession: boolean, redirects: boolean): void {
    this.#requireSession(visit, this.#options.grants.idIsInSession || needsSession);
    if (needsSession && redirects) refuseStrictSession(visit.req);
  }

  /** Remembers which service issued a grant that the session refers to, if another strategy has the same name. */
  afterLogin(grantId: string): void {
    if (this.#options.grants.idIsInSession) this.#strategy.remember(grantId);
  }

  /** Warns, once each, of options of `passport.authenticate` that nothing reads. */
  warnOfIgnored(options: object): void {
    for (const [name, value] of Object.entries(options)) {
      if (READ_OPTIONS.has(name) || value === undefined || !/^\w{1,64}$/.test(name)) continue;
      const message = `passport.authenticate: this strategy ignores the option ${name}. A parameter of the authorization request is set as { authorizationParams: { ${name}: … } }.`;
      this.warnOnce(`option ${name}`, 'ERR_IGNORED_OPTION', message);
    }
  }

  /** Warns of a mistake once. @param key Stands for the mistake. */
  warnOnce(key: string, code: string, message: string): void {
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    process.emitWarning(message, { code });
  }

  /** Forgets the strategy: it is closed. */
  release(): void {
    this.#strategy.release();
  }

  #requireSession({ req }: Visit, isNeeded: boolean): void {
    const { grants } = this.#options;
    if (this.#strategy.sharesName(grants.referenceOf(req))) {
      const message = `Two strategies for different services have the name '${this.#options.strategy.name}' and use one session. Set the option name of one of them to another name: the name given to passport.use does not set it.`;
      this.warnOnce('name', 'ERR_STRATEGY_NAME', message);
    }
    if (!isNeeded) return;
    const session = sessionOf(req);
    if (session) {
      refuseFixedSession(session);
      return;
    }
    if (!grants.hasSeenSession) {
      throw new ConfigurationError(
        'The request has no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.',
        { code: 'ERR_NO_SESSION' },
      );
    }
    // express-session calls the next handler without a session while its store is disconnected.
    throw new TokenStoreError(
      'The request has no session, although earlier requests had one: the session store is disconnected.',
      { code: 'ERR_SESSION_STORE' },
    );
  }
}

function misplacedClient(): ConfigurationError {
  return new ConfigurationError(
    'apiClient(strategy) is mounted before the session and Passport, so it finds no grant: mount express-session, then passport.session(), then apiClient(strategy).',
    { code: 'ERR_MIDDLEWARE_ORDER' },
  );
}
