// One process of an application that runs in several, with the routes of login and callback and a page. It is the built
// package that runs here. Grants, and marks of used logins, are in a token store (`grants: 'store'`; sessions are in memory
// then), beside the sessions in a shared session store ('sessions'), or in the memory of this process ('memory').
import { createServer } from 'node:http';
import connectPgSimple from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, memoryTokenStore, requireAuthorization, Strategy } from 'passport-oauth-app';
import pg from 'pg';
import { createClient } from 'redis';
import { openStore } from './open-store.mjs';

const { server: address, grants, options } = JSON.parse(process.argv[2]);

async function sharedSessions() {
  if (address.redis)
    return new RedisStore({
      client: await createClient({ url: address.redis })
        .on('error', () => {})
        .connect(),
    });
  const pool = new pg.Pool({ connectionString: address.postgres }).on('error', () => {});
  return new (connectPgSimple(session))({ pool, createTableIfMissing: true, pruneSessionInterval: false });
}

const tokenStores = {
  store: async () => (await openStore({ lease: 30, ...address })).tokenStore,
  sessions: () => undefined,
  memory: memoryTokenStore,
};
const strategy = new Strategy({
  callbackURL: 'http://127.0.0.1/callback',
  scope: 'project',
  tokenStore: await tokenStores[grants](),
  ...options,
});
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
const store = grants === 'store' ? undefined : await sharedSessions();
app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false, store }));
app.use(passport.session());
app.use(apiClient(strategy));
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }));
app.get('/page', requireAuthorization({ login: '/login' }), (_req, res) => res.send('the page'));
app.use((error, _req, res, _next) =>
  res.status(error.status ?? 500).json({ code: error.code, message: error.message }),
);

const server = createServer(app);
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => strategy.close().then(() => process.exit()));
process.on('disconnect', () => process.exit());
