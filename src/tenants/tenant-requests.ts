import type { IncomingMessage } from 'node:http';
import { ApiClient, createApiClient, partsOf } from '../api/api-client.js';
import type { ApiContext } from '../api/api-context.js';
import { nameOfTenant, OAuthAppError, ofStrategy, publicName } from '../errors.js';
import { authenticate, passOn, readCallbackQuery } from '../login/authenticate.js';
import type { PassportActions, RouteOptions } from '../login/login-context.js';
import { tokensOfLogin } from '../login/pending-logins.js';
import { type Handler, refuseFramework } from '../middleware/api-client.js';
import { endPassportLogin } from '../middleware/logout.js';
import { GrantCredentials } from '../refresh/grant-credentials.js';
import { cookieToken } from '../session/cookies.js';
import { failedSource, NO_GRANT_SOURCE } from '../session/request-clients.js';
import { polyfillSessionMethods, sessionOf, settle } from '../session/session.js';
import { Visit } from '../session/visit.js';
import { runtimeOf, type Strategy } from '../strategy/strategy.js';
import type { Directory } from './directory.js';
import { TenantError, unknownTenant } from './tenant-error.js';
import { canonicalTenant } from './tenant-name.js';
import type { TenantLogin, TenantSessions } from './tenant-session.js';

/** What requests need of their tenants. */
export interface TenantRequestsOptions {
  readonly name: string;
  readonly tenantOf: (req: IncomingMessage) => unknown;
  readonly directory: Directory;
  readonly sessions: TenantSessions;
  /** Of clients without a tenant. */
  readonly api: ApiContext;
  readonly deleteGrant: (login: TenantLogin) => Promise<void>;
}

const UNKNOWN_TENANT_LOGIN =
  'This login is unknown: it has expired, was finished before, or was begun in another browser. Please log in again.';

/** Finds the tenant of each request, and hands the request to that tenant's strategy. */
export class TenantRequests {
  readonly #options: TenantRequestsOptions;
  /** Begins the names of cookies of pending logins. */
  readonly #token: string;
  readonly #strategies = new WeakMap<IncomingMessage, Strategy>();

  constructor(options: TenantRequestsOptions) {
    this.#options = options;
    this.#token = cookieToken(nameOfTenant(options.name, ''));
  }

  /** Answers a request to the routes of login and callback. Never rejects. */
  async authenticate(req: IncomingMessage, actions: PassportActions, options: RouteOptions): Promise<void> {
    try {
      let tenant = (await this.#options.tenantOf(req)) ?? undefined;
      // Not for a tenant that is known: its strategy refuses what no framework of Node hands over.
      const visit = tenant === undefined ? new Visit(req) : undefined;
      // A login names its tenant: the session's latest may be another one than the user means.
      if (visit && readCallbackQuery(visit.query)) {
        tenant = this.#tenantOfLogin(visit) ?? this.#options.sessions.latest(req);
        if (tenant === undefined) return void actions.fail({ message: UNKNOWN_TENANT_LOGIN }, 403);
      }
      const strategy = await this.#strategyOf(tenant);
      await authenticate(runtimeOf(strategy), actions, req, options);
    } catch (error) {
      await passOn(ofStrategy(error, this.#options.name), actions, undefined);
    }
  }

  /** Creates middleware that runs that of the request's strategy. @param property See `ManyStrategies`. */
  each(create: (strategy: Strategy) => Handler, property: string | undefined): Handler {
    const handlers = new WeakMap<Strategy, Handler>();
    const handlerOf = (strategy: Strategy) => {
      const known = handlers.get(strategy);
      if (known) return known;
      const handler = create(strategy);
      handlers.set(strategy, handler);
      return handler;
    };
    return (req, res, next) => {
      const { name } = this.#options;
      if (refuseFramework(req, res, next, name)) return;
      if (property !== undefined) this.#hookLogout(req);
      const run = (strategy: Strategy) => {
        this.#strategies.set(req, strategy);
        handlerOf(strategy)(req, res, next);
      };
      const fail = (error: unknown) => {
        if (property === undefined || !(error instanceof OAuthAppError)) return next(ofStrategy(error, name));
        const isUnknown = error instanceof TenantError;
        const source = isUnknown ? NO_GRANT_SOURCE : failedSource(ofStrategy(error, name));
        Reflect.set(req, property, createApiClient(source, this.#options.api));
        next();
      };
      // What follows apiClient() works with the same client.
      const known = property === undefined ? this.#strategies.get(req) : undefined;
      let found: Strategy | Promise<Strategy>;
      try {
        found = known ?? this.#strategyFor(req);
      } catch (error) {
        return fail(error);
      }
      if (found instanceof Promise) found.then(run, fail).catch(next);
      else run(found);
    };
  }

  /** Creates middleware that deletes the grants of all tenants that the session is logged in at, and ends the Passport login. */
  logout(): Handler {
    return (req, res, next) => {
      const { name } = this.#options;
      if (refuseFramework(req, res, next, name)) return;
      this.#endLogins(req).then(
        () => next(),
        (error: unknown) => next(ofStrategy(error, name)),
      );
    };
  }

  /** Has the application's own `req.logout()` delete the grants at all tenants of the session: the new one names none. */
  #hookLogout(req: IncomingMessage): void {
    const { sessions, deleteGrant } = this.#options;
    const logOut: unknown = Reflect.get(req, 'logOut');
    if (typeof logOut !== 'function' || sessions.latest(req) === undefined) return;
    const logOutEverywhere = (given: unknown, callback?: unknown) => {
      const [options, done] = typeof given === 'function' ? [{}, given] : [given, callback];
      // Passport's error says that there has to be one.
      if (typeof done !== 'function') return logOut.call(req, options, done);
      const session = sessionOf(req) ?? {};
      polyfillSessionMethods(session, Reflect.get(Object(options), 'keepSessionInfo') === true);
      const former = { ...session };
      const logins = sessions.take(req);
      const restore = (error: unknown) => {
        Object.assign(session, former);
        throw error;
      };
      settle((settled) => logOut.call(req, options, settled))
        .then(() => Promise.all(logins.map(deleteGrant)), restore)
        .then(
          () => done(),
          (error: unknown) => done(error),
        );
    };
    Object.assign(req, { logOut: logOutEverywhere, logout: logOutEverywhere });
  }

  async #endLogins(req: IncomingMessage): Promise<void> {
    const logins = this.#options.sessions.take(req);
    for (const client of Object.values(req)) {
      const isOfTenants =
        client instanceof ApiClient && publicName(partsOf(client).context.strategyName).strategy === this.#options.name;
      const source = isOfTenants ? partsOf(client).source : undefined;
      if (source instanceof GrantCredentials) source.end();
    }
    const removals = await Promise.allSettled(logins.map((login) => this.#options.deleteGrant(login)));
    await endPassportLogin(req);
    for (const removal of removals) if (removal.status === 'rejected') throw removal.reason;
  }

  #strategyFor(req: IncomingMessage): Strategy | Promise<Strategy> {
    const { tenantOf, sessions } = this.#options;
    const strategyOf = (tenant: unknown) => this.#strategyOf(tenant ?? sessions.latest(req));
    const tenant = tenantOf(req);
    return tenant instanceof Promise ? tenant.then(strategyOf) : strategyOf(tenant);
  }

  #strategyOf(tenant: unknown): Strategy | Promise<Strategy> {
    const name = canonicalTenant(tenant);
    if (name === undefined) throw unknownTenant();
    return this.#options.directory.get(name);
  }

  /** Returns the tenant that this browser has begun a login at, by the `state` of the callback. Its cookie opens there alone. */
  #tenantOfLogin(visit: Visit): string | undefined {
    const state = visit.query.get('state') ?? '';
    const tokens = /^[\w-]{43}$/.test(state) ? tokensOfLogin(visit, state) : [];
    const token = tokens.find((one) => one.startsWith(this.#token));
    // Names of cookies escape dots.
    return canonicalTenant(token?.slice(this.#token.length).replaceAll('%2e', '.'));
  }
}
