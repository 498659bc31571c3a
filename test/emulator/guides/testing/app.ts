import express, { type Express } from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, requireAuthorization, Strategy, type StrategyOptions } from 'passport-oauth-app';

/** Creates the application. The caller passes the options, so that a test can use the emulator. */
export function createApp(options: StrategyOptions): Express {
  const strategy = new Strategy(options, (_accessToken, _refreshToken, profile, done) =>
    done(null, { id: profile.id }),
  );
  const authenticator = new passport.Passport();
  authenticator.use(strategy);
  authenticator.serializeUser((user, done) => done(null, user));
  authenticator.deserializeUser((user: Express.User, done) => done(null, user));

  const app = express();
  app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  app.use(authenticator.session());
  app.use(apiClient(strategy));

  const redirects = { successReturnToOrRedirect: '/projects', failureRedirect: '/declined' };
  app.get('/login', authenticator.authenticate('oauth-app'));
  app.get('/callback', authenticator.authenticate('oauth-app', redirects));
  app.get('/declined', (_req, res) => void res.send('You declined.'));
  app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
    req.apiClient
      .projects()
      .then((projects) => res.json(projects))
      .catch(next);
  });
  return app;
}
