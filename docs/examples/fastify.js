import fastifyExpress from '@fastify/express';
import session from 'express-session';
import Fastify from 'fastify';
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

const app = Fastify();
await app.register(fastifyExpress);
app.use(session({ secret: 'only for development', resave: false, saveUninitialized: false }));
app.use(passport.session());
app.use(apiClient(strategy));
app.use('/login', passport.authenticate('oauth-app'));
app.use('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }));
app.use('/projects', requireAuthorization({ login: '/login' }));
app.use('/logout', logout(strategy));

app.get('/projects', (request) => request.raw.apiClient.projects());
app.post('/logout', (_request, reply) => reply.redirect('/'));
await app.listen({ port: 3000 });
