// The application of the first page, in TypeScript: no cast, and no type of ours named.
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, logout, requireAuthorization, Strategy } from '../../../src/index.js';

const strategy = new Strategy(
  {
    authUrl: 'https://accounts.example.com',
    baseUrl: 'https://api.example.com',
    enterpriseBaseUrl: 'https://{domain}.api.example.com',
    clientID: process.env.CLIENT_ID,
    clientSecret: process.env.CLIENT_SECRET,
    callbackURL: 'https://app.example.net/callback',
    scope: ['project', 'tm'],
  },
  (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id }),
);

passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user: Express.User, done) => done(null, user));

/** Never listens: it is compiled only. */
export const app = express();
app.use(session({ secret: 'a secret of the session', resave: false, saveUninitialized: false }));
app.use(passport.session());
app.use(apiClient(strategy));

app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/', failureRedirect: '/no' }));
app.get('/login-by-instance', passport.authenticate(strategy));
app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
  const grantId: string = req.apiClient.grantId;
  res.json([grantId, await req.apiClient.projects()]);
});
app.get('/names', apiClient(strategy), async (req, res) => {
  const page = await req.apiClient.projects<{
    readonly data: readonly { readonly data: { readonly name: string } }[];
  }>();
  res.json(page.data.map(({ data }) => data.name));
});
app.post('/logout', logout(strategy), (_req, res) => res.redirect('/'));
