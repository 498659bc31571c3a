import { fileURLToPath } from 'node:url';
import express, { type Application, type NextFunction, type Request, type Response, type Router } from 'express';
import session, { type Store } from 'express-session';
import passport from 'passport';
import {
  type ApiClient,
  ApiError,
  apiClient,
  logout,
  type Profile,
  requireAuthorization,
  Strategy,
  type StrategyOptions,
} from 'passport-oauth-app';
import { operatorRoutes } from './operator.js';
import { declinedPage } from './pages/declined.js';
import { errorPage } from './pages/error.js';
import { glossaryPage } from './pages/glossary.js';
import { homePage } from './pages/home.js';
import { notFoundPage } from './pages/not-found.js';
import { type ProjectList, projectsPage } from './pages/projects.js';
import type { Panel } from './panel/panel.js';
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
  readonly panel: Panel;
  /** The pages for a frame of the emulated service. */
  readonly embedded?: Router | undefined;
  /** True if every visitor may see the operator's page: on a developer's own computer alone. */
  readonly openToOperators?: boolean | undefined;
}

/** Returns the strategy: the addresses of the service, the credentials, and the user that a login leads to. */
export function createStrategy(options: StrategyOptions): Strategy {
  return new Strategy({ ...options, userProfile: accountOf }, (_accessToken, _refreshToken, profile, done) =>
    done(null, userOf(profile)),
  );
}

/** Returns the application: log in, show projects, log out. */
export function createApp({
  strategy,
  sessionSecret,
  sessionStore,
  secure,
  panel,
  embedded,
  openToOperators,
}: AppOptions): Application {
  const logins = new passport.Passport();
  logins.use(strategy);
  logins.serializeUser((user, done) => done(null, user));
  logins.deserializeUser((user: Express.User, done) => done(null, user));

  const app = express();
  app.disable('x-powered-by');
  if (secure) app.set('trust proxy', 1);
  app.use(securityHeaders, sameOriginPosts);
  app.use(express.static(fileURLToPath(new URL('../public/', import.meta.url))));
  app.locals.hasEmbedded = embedded !== undefined;
  // Before the session: a frame of the service needs none.
  if (embedded) app.use('/embedded', embedded);
  app.use(
    session({
      name: 'example.sid',
      secret: sessionSecret,
      resave: false,
      saveUninitialized: false,
      cookie: { httpOnly: true, sameSite: 'lax', secure },
      ...(sessionStore ? { store: sessionStore } : {}),
    }),
  );
  app.use(logins.session());
  app.use(apiClient(strategy));
  app.use(panel.router);

  app.get('/', async (req, res) => {
    res.send(await homePage(req, res));
  });
  app.get('/login', logins.authenticate('oauth-app'));
  app.get(
    '/callback',
    logins.authenticate('oauth-app', { successReturnToOrRedirect: '/', failWithError: true }),
    declined,
  );
  app.get('/declined', async (req, res) => {
    res.send(await declinedPage(req, res));
  });
  app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
    const projects = await req.apiClient.projects<ProjectList>();
    res.send(await projectsPage(req, res, projects));
  });
  app.get('/glossary', requireAuthorization({ login: '/login', scope: 'glossary' }), async (req, res) => {
    res.send(await glossaryPage(req, res));
  });
  app.set('has operator', openToOperators === true);
  if (openToOperators) app.use(operatorRoutes(strategy));
  app.post('/logout', logout(strategy), (_req, res) => {
    res.redirect(303, '/');
  });

  app.use(async (req, res) => {
    res.status(404).send(await notFoundPage(req, res));
  });
  app.use(errorPage);
  return app;
}

/** Passport reports a declined login with status 401, and one that was not begun here or is over with 403. */
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

function userOf(profile: Profile): Express.User {
  const { id = 'unknown', displayName, organizationDomain: organization } = profile;
  return { id, name: typeof displayName === 'string' ? displayName : `Account ${id}`, organization };
}
