// One process of an application that runs in several, with the routes of login and callback. It is the built package that
// runs here. Sessions are in memory; grants, and marks of used logins, are in Redis.
import { createServer } from 'node:http';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, Strategy } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';

const { redis, options } = JSON.parse(process.argv[2]);
const client = createClient({ url: redis }).on('error', () => {});
await client.connect();
const strategy = new Strategy({
  ...options,
  callbackURL: 'http://127.0.0.1/callback',
  scope: 'project',
  tokenStore: redisTokenStore(client),
});
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false }));
app.use(passport.session());
app.use(apiClient(strategy));
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successRedirect: '/' }));

const server = createServer(app);
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit());
