import session from 'express-session';
import Koa from 'koa';
import connect from 'koa-connect';
import passport from 'passport';
import { apiClient, logout, requireAuthorization, Strategy } from 'passport-oauth-app';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET } = process.env;
const strategy = new Strategy({
  authUrl: AUTH_URL,
  baseUrl: BASE_URL,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  callbackURL: 'http://localhost:3000/callback',
  scope: ['project'],
});
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

/** Runs a handler for one path. A router does the same. */
function at(path, handler) {
  const middleware = connect(handler);
  return (context, next) => (context.path === path ? middleware(context, next) : next());
}

const app = new Koa();
app.use(connect(session({ secret: 'only for development', resave: false, saveUninitialized: false })));
app.use(connect(passport.session()));
app.use(connect(apiClient(strategy)));
app.use(at('/login', passport.authenticate('oauth-app')));
app.use(at('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' })));
app.use(at('/projects', requireAuthorization({ login: '/login' })));
app.use(at('/logout', logout(strategy)));
app.use(async (context) => {
  if (context.path === '/projects') context.body = await context.req.apiClient.projects();
  else if (context.path === '/logout') context.redirect('/');
});
app.listen(3000);
