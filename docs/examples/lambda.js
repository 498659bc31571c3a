import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, requireAuthorization, Strategy } from 'passport-oauth-app';
import serverless from 'serverless-http';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET } = process.env;
const strategy = new Strategy({
  authUrl: AUTH_URL,
  baseUrl: BASE_URL,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  callbackURL: 'https://app.example.net/callback',
  scope: ['project'],
  refresh: { ahead: 0 },
});
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
app.set('trust proxy', 1);
app.use(session({ secret: 'only for development', resave: false, saveUninitialized: false }));
app.use(passport.session());
app.use(apiClient(strategy));
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }));
app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
  req.apiClient
    .projects()
    .then((projects) => res.json(projects))
    .catch(next);
});

export const handler = serverless(app);
