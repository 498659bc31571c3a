import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import session from 'express-session';
import passportModule from 'passport';
import type { Emulator } from 'passport-oauth-app/emulator';
import OAuth2Strategy from 'passport-oauth2';

/** An application that runs. */
export interface PlainApplication {
  readonly origin: string;
  close(): Promise<void>;
}

/**
 * Starts an application as services show it in their samples, without this package: passport-oauth2, the login by a redirect
 * inside the frame, and a session cookie that is `SameSite=None`. It is what a move to this package must not break.
 */
export async function startPlainApplication(service: Emulator): Promise<PlainApplication> {
  const server = createServer({ keepAliveTimeout: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://app.localhost:${(server.address() as AddressInfo).port}`;
  const callbackURL = `${origin}/oauthRedirect`;
  const { clientID, clientSecret } = service.options;
  service.register({ clientID, redirectUrls: [callbackURL] });
  const passport = new passportModule.Passport();
  const [authorizationURL, tokenURL] = [`${service.authUrl}/oauth/authorize`, `${service.authUrl}/oauth/token`];
  passport.use(
    new OAuth2Strategy(
      { authorizationURL, tokenURL, clientID, clientSecret, callbackURL, state: true },
      (accessToken: string, refreshToken: string, _profile: unknown, done: (error: null, user: object) => void) =>
        done(null, { accessToken, refreshToken }),
    ),
  );
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const app = express();
  app.use((req, _res, next) => {
    req.headers['x-forwarded-proto'] = 'https';
    next();
  });
  const cookie = { sameSite: 'none', secure: true } as const;
  app.use(session({ secret: 'a secret', resave: false, saveUninitialized: false, proxy: true, cookie }));
  app.use(passport.initialize(), passport.session());
  app.get('/oauthSignin', passport.authenticate('oauth2'));
  app.get('/oauthRedirect', passport.authenticate('oauth2', { successRedirect: '/', failureRedirect: '/grantDenied' }));
  app.get('/grantDenied', (_req, res) => {
    res.send('You have 3rd party cookies disabled.');
  });
  app.get('/', (req, res) => {
    if (req.user) res.send('The documents of the user');
    else res.redirect('/oauthSignin');
  });
  server.on('request', app);
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { origin, close };
}
