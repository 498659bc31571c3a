const express = require('express');
const session = require('express-session');
const passport = require('passport');
const { apiClient, logout, requireAuthorization, Strategy } = require('passport-oauth-app');
const { gitlab } = require('passport-oauth-app/providers');
const { sessionStore, tokenStore } = require('./stores.cjs');
const { takeOver } = require('./take-over.cjs');
const users = require('./users.cjs');

const strategy = new Strategy(
  {
    ...gitlab,
    name: 'gitlab',
    clientID: process.env.CLIENT_ID,
    clientSecret: process.env.CLIENT_SECRET,
    callbackURL: 'http://localhost:3000/callback',
    scope: ['read_user', 'read_api'],
    tokenStore,
    grantId: (_req, user) => String(user.id),
  },
  (_accessToken, _refreshToken, profile, done) => users.save({ id: profile.id }, done),
);
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user.id));
passport.deserializeUser((id, done) => users.find(id, done));

const former = {
  findTokens: (req) => req.user.refreshToken && { refreshToken: req.user.refreshToken },
  removeTokens: (req) => users.removeTokens(req.user.id),
};

const app = express();
app.use(session({ secret: process.env.SESSION_SECRET, resave: false, saveUninitialized: false, store: sessionStore }));
app.use(passport.session());
app.use(takeOver(strategy, former), apiClient(strategy));
app.get('/login', passport.authenticate('gitlab'));
app.get('/callback', passport.authenticate('gitlab', { successReturnToOrRedirect: '/projects' }));
app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
  req.apiClient
    .get('/projects', { query: { membership: true } })
    .then((projects) => res.json(projects))
    .catch(next);
});
app.post('/logout', logout(strategy), (_req, res) => res.redirect('/'));
app.listen(3000);
