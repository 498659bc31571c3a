import express, { type Express } from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, requireAuthorization, Strategy, type StrategyOptions } from 'passport-oauth-app';

declare module 'http' {
  interface IncomingMessage {
    tracker: import('passport-oauth-app').ApiClient;
  }
}

export function createApp(translations: StrategyOptions, tracker: StrategyOptions): Express {
  const first = new Strategy({ ...translations, name: 'translations' });
  const second = new Strategy({ ...tracker, name: 'tracker' });
  const passports = new passport.Passport();
  passports.use(first).use(second);
  passports.serializeUser((user, done) => done(null, user));
  passports.deserializeUser((user: Express.User, done) => done(null, user));

  const app = express();
  app.use(session({ secret: process.env.SESSION_SECRET ?? 'tests', resave: false, saveUninitialized: false }));
  app.use(passports.session(), apiClient(first), apiClient(second, { property: 'tracker' }));

  app.get('/login', passports.authenticate('translations'));
  app.get('/callback', passports.authenticate('translations', { successReturnToOrRedirect: '/' }));

  // Users who are logged in can connect the second service.
  const loggedIn = requireAuthorization({ login: '/login' });
  app.get('/connect', loggedIn, passports.authorize('tracker'));
  app.get('/connected', loggedIn, passports.authorize('tracker'), (_req, res) => res.redirect('/'));

  app.get('/', loggedIn, (req, res, next) => {
    const issues = req.tracker.authorized ? req.tracker.get('/projects') : undefined;
    Promise.all([req.apiClient.projects(), issues])
      .then(([projects, issues]) => res.json({ projects, issues }))
      .catch(next);
  });
  return app;
}
