// An application as it is before its migration to the package: docs/migration.md has the one after.
const express = require('express');
const session = require('express-session');
const passport = require('passport');
const OAuth2Strategy = require('passport-oauth2');
const refresh = require('passport-oauth2-refresh');
const users = require('./users.cjs');

const strategy = new OAuth2Strategy(
  {
    authorizationURL: 'https://gitlab.com/oauth/authorize',
    tokenURL: 'https://gitlab.com/oauth/token',
    clientID: process.env.CLIENT_ID,
    clientSecret: process.env.CLIENT_SECRET,
    callbackURL: 'http://localhost:3000/callback',
    scope: ['read_user', 'read_api'],
    state: true,
  },
  (accessToken, refreshToken, profile, done) => users.save({ id: profile.id, accessToken, refreshToken }, done),
);
strategy._oauth2.useAuthorizationHeaderforGET(true);
strategy.userProfile = function (accessToken, done) {
  this._oauth2.get('https://gitlab.com/api/v4/user', accessToken, (error, body) =>
    done(error, error ? null : JSON.parse(body)),
  );
};
passport.use('gitlab', strategy);
refresh.use('gitlab', strategy);
passport.serializeUser((user, done) => done(null, user.id));
passport.deserializeUser((id, done) => users.find(id, done));

const app = express();
app.use(session({ secret: process.env.SESSION_SECRET, resave: false, saveUninitialized: false }));
app.use(passport.session());
app.get('/login', passport.authenticate('gitlab'));
app.get('/callback', passport.authenticate('gitlab', { successRedirect: '/projects' }));
app.get('/projects', (req, res, next) => {
  refresh.requestNewAccessToken('gitlab', req.user.refreshToken, async (error, accessToken, refreshToken) => {
    if (error) return next(error);
    await users.save({ id: req.user.id, accessToken, refreshToken });
    const headers = { authorization: `Bearer ${accessToken}` };
    const response = await fetch('https://gitlab.com/api/v4/projects?membership=true', { headers });
    res.json(await response.json());
  });
});
app.listen(3000);
