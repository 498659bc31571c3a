import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler } from 'express';
import type { SessionOptions } from 'express-session';
import session from 'express-session';
import passportModule from 'passport';
import { apiClient, logout, requireAuthorization, Strategy, type StrategyOptions } from 'passport-oauth-app';

/** An application that logs users in at a server of others, as README.md shows one. It listens nowhere by itself. */
export interface Application {
  readonly handle: RequestListener;
  close(): Promise<void>;
}

/** Makes the application. Users are known by `profile.id` alone. */
export function createApplication(options: StrategyOptions, store: NonNullable<SessionOptions['store']>): Application {
  const strategy = new Strategy(options, (_accessToken, _refreshToken, profile, done) =>
    done(null, { id: profile.id }),
  );
  const passport = new passportModule.Passport();
  passport.use(strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const app = express();
  app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false, store }));
  app.use(passport.session());
  app.use(apiClient(strategy));
  app.get('/login', passport.authenticate('oauth-app'));
  app.get('/callback', passport.authenticate('oauth-app', { successRedirect: '/', failureRedirect: '/declined' }));
  app.get('/', (req, res) => res.json({ user: req.user ?? null, authorized: req.apiClient.authorized }));
  app.get('/projects', requireAuthorization(), async (req, res) => res.json(await req.apiClient.projects()));
  app.post('/logout', logout(strategy), (_req, res) => res.json({}));
  app.use(((error, _req, res, _next) => {
    res.status(error.status ?? 500).json({ name: error.name, code: error.code, message: error.message });
  }) satisfies ErrorRequestHandler);
  return { handle: app, close: () => strategy.close() };
}

/** Listens on a free port of loopback. */
export async function listen(handle: RequestListener): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer({ keepAliveTimeout: 0 }, handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** An API whose answer is the user of the access token, as the authorization server tells it. */
export function createApi(whoIs: (authorization: string) => Promise<string | undefined>): RequestListener {
  const app = express();
  app.get('/api/v2/projects', async (req, res) => {
    const id = await whoIs(req.get('authorization') ?? '');
    if (id === undefined) res.status(401).json({ error: 'invalid_token' });
    else res.json({ id });
  });
  return app;
}
