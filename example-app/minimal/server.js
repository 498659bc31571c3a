import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, logout, oauthErrors, requireAuthorization, Strategy } from 'passport-oauth-app';

const port = Number(process.env.PORT ?? 3000);

const strategy = new Strategy({
  authUrl: process.env.AUTH_URL,
  baseUrl: process.env.BASE_URL,
  clientID: process.env.CLIENT_ID,
  clientSecret: process.env.CLIENT_SECRET,
  callbackURL: process.env.CALLBACK_URL ?? `http://localhost:${port}/callback`,
  scope: ['project', 'tm'],
});
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
app.use(session({ secret: process.env.SESSION_SECRET, resave: false, saveUninitialized: false }));
app.use(passport.session());
app.use(apiClient(strategy));

app.get('/', (_req, res) => {
  res.send('<a href="/projects">My projects</a> <form method="post" action="/logout"><button>Log out</button></form>');
});
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/', failureRedirect: '/' }));
app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
  const names = req.apiClient.projects().then(({ data }) => data.map((project) => project.data.name));
  names.then((lines) => res.type('text').send(lines.join('\n'))).catch(next);
});
app.post('/logout', logout(strategy), (_req, res) => res.redirect(303, '/'));
app.use(oauthErrors({ login: '/login' }));

const server = app.listen(port, () => console.log(`Open http://localhost:${server.address().port}`));
process.once('SIGTERM', () => server.close(() => strategy.close()));
