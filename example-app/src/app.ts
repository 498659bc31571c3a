import { fileURLToPath } from 'node:url';
import express, { type Application, type NextFunction, type Request, type Response, type Router } from 'express';
import session, { type Store } from 'express-session';
import passport from 'passport';
import {
  type ApiClient,
  ApiError,
  apiClient,
  type GrantSummary,
  logout,
  requireAuthorization,
  Strategy,
  type StrategyOptions,
} from 'passport-oauth-app';
import { errorPage } from './errors.js';
import * as pages from './pages.js';
import { sameOriginPosts, securityHeaders } from './security.js';

declare global {
  namespace Express {
    /** The person who logged in, as the session keeps them. */
    interface User {
      readonly id: string;
      readonly name: string;
      readonly organization?: string | undefined;
    }
  }
}

/** The surroundings of the application. */
export interface AppOptions {
  readonly strategy: Strategy;
  readonly sessionSecret: string;
  /** The store of the sessions. Without one they are kept in memory, which is for development only. */
  readonly sessionStore?: Store | undefined;
  /** True if the application is reached by https, through one proxy. */
  readonly secure: boolean;
  /** Shows what happens to the tokens. No application needs it. */
  readonly panel: Router;
  /** The pages for a frame of the emulated service. */
  readonly embedded?: Router | undefined;
  /** True if every visitor may see the operator's page: on a developer's own computer alone. */
  readonly openToOperators?: boolean | undefined;
}

/** Returns the strategy: the addresses of the service, the credentials, and the user that a login leads to. */
export function createStrategy(options: StrategyOptions): Strategy {
  return new Strategy({ ...options, userProfile: accountOf }, (_accessToken, _refreshToken, profile, done) => {
    const { id = 'unknown', displayName, organizationDomain: organization } = profile;
    done(null, { id, name: typeof displayName === 'string' ? displayName : `Account ${id}`, organization });
  });
}

/** Id of the grant of the organization that installed the application. It belongs to no user. */
export const organizationGrant = 'organization';

/** Returns the application: log in, show projects, log out. */
export function createApp(options: AppOptions): Application {
  const { strategy, sessionSecret, sessionStore, secure, panel, embedded, openToOperators } = options;
  const logins = new passport.Passport();
  logins.use(strategy);
  /** For the operator's page: grants have ids alone. */
  const names = new Map<string, string>();
  logins.serializeUser((user, done) => done(null, user));
  logins.deserializeUser((user: Express.User, done) => {
    if (openToOperators) names.set(user.id, user.name);
    done(null, user);
  });

  const app = express();
  app.disable('x-powered-by');
  if (secure) app.set('trust proxy', 1);
  Object.assign(app.locals, { hasEmbedded: embedded !== undefined, hasOperator: openToOperators });
  app.use(securityHeaders, sameOriginPosts);
  app.use(express.static(fileURLToPath(new URL('../public/', import.meta.url))));
  // Before the session: a frame of the service needs none.
  if (embedded) app.use('/embedded', embedded);
  const cookie = { httpOnly: true, sameSite: 'lax', secure } as const;
  const sessions = { name: 'example.sid', secret: sessionSecret, resave: false, saveUninitialized: false, cookie };
  app.use(session(sessionStore ? { ...sessions, store: sessionStore } : sessions));
  app.use(logins.session());
  app.use(apiClient(strategy));
  app.use(panel);

  app.get('/', (_req, res) => pages.send(res, pages.home));
  app.get('/login', logins.authenticate('oauth-app'));
  const outcome = { successReturnToOrRedirect: '/', failWithError: true };
  app.get('/callback', logins.authenticate('oauth-app', outcome), declined);
  app.get('/declined', (_req, res) => pages.send(res, pages.declined));
  app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
    const { data } = await req.apiClient.projects<pages.ProjectList>();
    await pages.send(res, pages.projects(data));
  });
  app.get('/glossary', requireAuthorization({ login: '/login', scope: 'glossary' }), (_req, res) =>
    pages.send(res, pages.glossary),
  );
  app.post('/logout', logout(strategy), (_req, res) => {
    res.redirect(303, '/');
  });

  // All grants, and a button that logs an account out everywhere. Put your own check of who the operator is in front of them.
  if (openToOperators) {
    app.get('/grants', async (_req, res) => pages.send(res, pages.grants(await grantsByAccount(strategy), names)));
    app.post('/grants/:account/end', async (req, res) => {
      const grants = (await grantsByAccount(strategy)).get(req.params.account) ?? [];
      await strategy.deleteGrant(grants.map(({ grantId }) => grantId));
      res.redirect(303, '/grants');
    });
    // A job of the organization, which needs no user to log in.
    app.post('/grants/job', async (_req, res) => {
      const { data } = await strategy.client(organizationGrant).projects<pages.ProjectList>();
      await pages.send(res, pages.job(data));
    });
  }

  app.use((_req, res) => pages.send(res.status(404), pages.notFound));
  app.use(errorPage);
  return app;
}

/** Passport reports a declined login with status 401, and one that did not start here or is over with 403. */
function declined(error: unknown, req: Request, res: Response, next: NextFunction): void {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 401) res.redirect('/declined');
  // Back and Approve again: the login is over, and has succeeded.
  else if (status === 403 && req.apiClient.authorized) res.redirect('/');
  else next(error);
}

/** Returns the name of the account. Not every service has this resource. */
async function accountOf(client: ApiClient): Promise<{ displayName?: string }> {
  try {
    const { data } = await client.get<{ data?: { fullName?: string } }>('/user');
    return data?.fullName ? { displayName: data.fullName } : {};
  } catch (error) {
    if (error instanceof ApiError) return {};
    throw error;
  }
}

/** Lists the grants of users by account: each login of an account has its own. */
async function grantsByAccount(strategy: Strategy): Promise<ReadonlyMap<string, readonly GrantSummary[]>> {
  const accounts = new Map<string, readonly GrantSummary[]>();
  for await (const grant of strategy.grants()) {
    if (grant.grantId === organizationGrant) continue;
    const account = grant.subject ?? 'unknown';
    accounts.set(account, [...(accounts.get(account) ?? []), grant]);
  }
  return new Map([...accounts].sort());
}
