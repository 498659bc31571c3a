import { fileURLToPath } from 'node:url';
import express, { type Application, type NextFunction, type Request, type Response } from 'express';
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
import { declinedPage } from './pages/declined.js';
import { errorPage } from './pages/error.js';
import { homePage } from './pages/home.js';
import { notFoundPage } from './pages/not-found.js';
import { type ProjectList, projectsPage } from './pages/projects.js';
import type { Panel } from './panel/panel.js';
import { sameOriginPosts, securityHeaders } from './security.js';

declare global {
  namespace Express {
    /** What the session keeps of the person who logged in. */
    interface User {
      readonly id: string;
      readonly name: string;
      readonly organization?: string | undefined;
    }
  }
}

/** What the application needs of its surroundings. */
export interface AppOptions {
  readonly strategy: Strategy;
  readonly sessionSecret: string;
  /** Where sessions are kept, and the grants beside them. Without one they are kept in memory, which is for development only. */
  readonly sessionStore?: Store | undefined;
  /** Whether the application is reached by https. There is a proxy in front of it then. */
  readonly secure: boolean;
  /** Shows what happens underneath. No application needs it. */
  readonly panel: Panel;
}

/** The strategy: where the service is, who this application is, and what it keeps of whoever logs in. */
export function createStrategy(options: StrategyOptions): Strategy {
  return new Strategy({ ...options, userProfile: accountOf }, (_accessToken, _refreshToken, profile, done) =>
    done(null, userOf(profile)),
  );
}

/** The application: log in, show projects, log out. */
export function createApp({ strategy, sessionSecret, sessionStore, secure, panel }: AppOptions): Application {
  const logins = new passport.Passport();
  logins.use(strategy);
  logins.serializeUser((user, done) => done(null, user));
  logins.deserializeUser((user: Express.User, done) => done(null, user));

  const app = express();
  app.disable('x-powered-by');
  if (secure) app.set('trust proxy', 1);
  app.use(securityHeaders, sameOriginPosts);
  app.use(express.static(fileURLToPath(new URL('../public/', import.meta.url))));
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
    res.send(await projectsPage(req, res, await req.apiClient.projects<ProjectList>()));
  });
  app.post('/logout', logout(strategy), (_req, res) => {
    res.redirect(303, '/');
  });

  app.use(async (req, res) => {
    res.status(404).send(await notFoundPage(req, res));
  });
  app.use(errorPage);
  return app;
}

/** Passport tells of a declined login by status 401. Everything else that fails is no choice of the user's. */
function declined(error: unknown, _req: Request, res: Response, next: NextFunction): void {
  if (error instanceof Error && 'status' in error && error.status === 401) res.redirect('/declined');
  else next(error);
}

/** The name of the account, where the service tells it: service.md shows no such resource, so that it may be missing. */
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
