import express, { type RequestHandler } from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, Strategy, type StrategyOptions } from 'passport-oauth-app';

declare global {
  namespace Express {
    interface User {
      readonly id: string;
    }
  }
}

/** Your accounts, and the services linked to them. */
export interface Accounts {
  signIn(name: string, password: string): Promise<Express.User | undefined>;
  find(id: string): Promise<Express.User | undefined>;
  remove(id: string): Promise<void>;
  /** Links an account of a service. Resolves to `false` if another user has linked it. */
  link(id: string, service: string, serviceUserId: string): Promise<boolean>;
  unlink(id: string, service: string): Promise<void>;
  /** Returns the names of the linked services. */
  linkedServices(id: string): Promise<readonly string[]>;
}

/** @param services Options by service name. They include a `tokenStore`, which they can share. */
export function createApp(accounts: Accounts, services: Readonly<Record<string, StrategyOptions>>): express.Express {
  const passports = new passport.Passport();
  passports.serializeUser((user, done) => done(null, (user as Express.User).id));
  passports.deserializeUser((id: string, done) => {
    accounts.find(id).then((user) => done(null, user ?? false), done);
  });

  const app = express();
  app.use(session({ secret: process.env.SESSION_SECRET ?? 'tests', resave: false, saveUninitialized: false }));
  app.use(passports.session());
  app.post('/sign-in', express.urlencoded(), (req, res, next) => {
    const signIn = accounts.signIn(req.body.name, req.body.password);
    signIn
      .then((user) =>
        user ? req.logIn(user, (error) => (error ? next(error) : res.redirect('/services'))) : res.redirect('/'),
      )
      .catch(next);
  });
  // Passport's own logout keeps the links: grants belong to the account, not to the session.
  app.post('/sign-out', (req, res, next) => req.logOut((error) => (error ? next(error) : res.redirect('/'))));

  const signedIn: RequestHandler = (req, res, next) => (req.user ? next() : res.redirect('/'));
  const userId = (req: { user?: unknown }) => (req.user as Express.User).id;
  const strategies = Object.entries(services).map(([name, options]) => {
    const strategy = new Strategy(
      { ...options, name, passReqToCallback: true, grantId: (_req, user) => (user as Express.User).id },
      (req, _accessToken, _refreshToken, profile, done) => {
        accounts.link(userId(req), name, String(profile.id)).then((isLinked) => done(null, isLinked && profile), done);
      },
    );
    passports.use(strategy);

    app.get(`/services/${name}/link`, signedIn, passports.authorize(name));
    const callback = passports.authorize(name, { failureRedirect: '/services' });
    app.get(`/services/${name}/callback`, signedIn, callback, (_req, res) => res.redirect('/services'));
    app.post(`/services/${name}/unlink`, signedIn, (req, res, next) => {
      const unlink = strategy.deleteGrant(userId(req)).then(() => accounts.unlink(userId(req), name));
      unlink.then(() => res.redirect('/services')).catch(next);
    });
    // Where the service is used.
    app.get(`/services/${name}/projects`, signedIn, apiClient(strategy), (req, res, next) => {
      req.apiClient
        .projects()
        .then((projects) => res.json(projects))
        .catch(next);
    });
    return strategy;
  });

  app.get('/services', signedIn, (req, res, next) => {
    accounts
      .linkedServices(userId(req))
      .then((names) => res.json(names))
      .catch(next);
  });
  app.post('/delete-account', signedIn, (req, res, next) => {
    const deletions = Promise.all(strategies.map((strategy) => strategy.deleteGrant(userId(req))));
    const removal = deletions.then(() => accounts.remove(userId(req)));
    removal.then(() => req.logOut((error) => (error ? next(error) : res.redirect('/')))).catch(next);
  });
  return app;
}
