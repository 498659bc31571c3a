// One process of an application that runs in several, with the routes of login and callback and a page. It is the built
// package that runs here. Grants, and marks of used logins, are in a token store (`grants: 'store'`; sessions are in memory
// then), beside the sessions in a shared session store ('sessions'), or in the memory of this process ('memory'). The page
// may be in a frame of the service.
// `connections` names the services that a user can connect: both stores are shared then. Their sessions are slow to save;
// with `idIsOfUser`, their grants are not saved before /release is asked for.
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, embedded, memoryTokenStore, requireAuthorization, Strategy } from 'passport-oauth-app';
import { openStore } from './open-store.mjs';

const { server: address, grants, options, connections, idIsOfUser } = JSON.parse(process.argv[2]);

/** Loads the client of that store alone, as `openStore` does. */
async function sharedSessions() {
  if (address.redis) {
    const [{ RedisStore }, { createClient }] = [await import('connect-redis'), await import('redis')];
    const client = createClient({ url: address.redis }).on('error', () => {});
    return new RedisStore({ client: await client.connect() });
  }
  const [{ default: pg }, { default: connectPgSimple }] = [await import('pg'), await import('connect-pg-simple')];
  const pool = new pg.Pool({ connectionString: address.postgres }).on('error', () => {});
  return new (connectPgSimple(session))({ pool, createTableIfMissing: true, pruneSessionInterval: false });
}

const held = [];

/** Has each save of a store wait. */
function delaySaves(store, wait) {
  const set = store.set.bind(store);
  store.set = (...args) => wait(...args).then(() => set(...args));
  return store;
}

const untilReleased = (id) =>
  id.startsWith('login:') ? Promise.resolve() : new Promise((resolve) => held.push(resolve));

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
const store = grants === 'store' && !connections ? undefined : await sharedSessions();
app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false, store }));
app.use(passport.session());
const frame = embedded(strategy, {
  path: '/login/frame',
  login: '/login',
  frameAncestors: ['http://service.localhost'],
});
app.use(frame);
app.use(apiClient(strategy));
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }));
app.get('/page', requireAuthorization({ login: '/login', frame }), (_req, res) => res.send('the page'));
for (const name of connections ?? []) {
  const shared = await tokenStores.store();
  const tokenStore = idIsOfUser ? delaySaves(shared, untilReleased) : shared;
  const grantId = idIsOfUser ? { grantId: (_req, user) => user.id } : {};
  const callbackURL = `http://127.0.0.1/${name}/callback`;
  passport.use(new Strategy({ scope: 'project', ...options, ...grantId, name, tokenStore, callbackURL }));
  app.get(`/${name}`, passport.authorize(name));
  app.get(`/${name}/callback`, passport.authorize(name), (_req, res) => res.send('connected'));
}
if (connections) {
  if (!idIsOfUser) delaySaves(store, () => setTimeout(300));
  app.get('/held', (_req, res) => res.send(String(held.length)));
  app.get('/release', (_req, res) => res.send(String(held.splice(0).map((release) => release()).length)));
  app.get('/local-login', (req, res, next) =>
    req.logIn({ id: 'ada' }, (error) => (error ? next(error) : res.send(''))),
  );
  app.get('/leave', (req, res, next) => req.logout((error) => (error ? next(error) : res.send(''))));
  app.get('/session', (req, res) => res.json(req.session));
}
app.use((error, _req, res, _next) =>
  res.status(error.status ?? 500).json({ code: error.code, message: error.message }),
);

const server = createServer({ keepAliveTimeout: 0 }, app);
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => strategy.close().then(() => process.exit()));
process.on('disconnect', () => process.exit());
