import { once } from 'node:events';
import { createServer, ServerResponse } from 'node:http';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, Strategy } from '../../dist/index.js';
import { SESSION } from '../apps/common.mjs';
import { Connection } from '../lib/connection.mjs';
import { logIn } from '../lib/log-in.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/**
 * The middleware alone, without HTTP: passes of a request whose grant is in the cache. One user has logged in through an
 * application, so that session and grant are what a login leaves.
 */
const WARM_UPS = 300_000;
const TIMED = 1_000_000;
const ALLOCATED = 20_000;

const { service } = argument;
const store = new session.MemoryStore();
const { strategy, seen } = await loggedIn();
const middleware = apiClient(strategy);

/** What the middleware looks at, as Express, express-session and Passport leave it. */
class Request {
  method = 'GET';
  url = '/';
  originalUrl = '/';
  headers = HEADERS;
  socket = seen.socket;
  sessionStore = store;
  sessionID = seen.sessionID;
  session = seen.session;
  user = seen.user;
  logOut = seen.logOut;
  logout = seen.logout;
  constructor(res) {
    this.res = res;
  }
}

Object.setPrototypeOf(Request.prototype, Object.getPrototypeOf(seen));

const HEADERS = seen.headers;
/** Express' own, not sent yet. */
const response = Object.setPrototypeOf(new ServerResponse(seen), Object.getPrototypeOf(seen.res));
let passed = 0;
const next = () => {
  passed += 1;
};
const nothing = (_req, _res, pass) => pass();

answerTasks(undefined, { measure, passes });

/** @returns {{ ns: number, bytes: number }} of one pass, without what making the request takes */
function measure() {
  for (const handler of [nothing, middleware]) pass(handler, WARM_UPS);
  const ns = nsOf(middleware) - nsOf(nothing);
  const bytes = bytesOf(middleware) - bytesOf(nothing);
  if (passed === 0 || !new Request(response).session) throw new Error('Nothing passed');
  return { ns, bytes };
}

/** For the profiler. */
function passes(times) {
  pass(middleware, times);
  return { statuses: {} };
}

function pass(handler, times) {
  for (let time = 0; time < times; time += 1) {
    const req = new Request(response);
    handler(req, response, next);
    if (handler === middleware && !req.apiClient.authorized) throw new Error('The grant was not found');
  }
}

/** CPU of the process, so that collecting what a pass leaves counts too. */
function nsOf(handler) {
  const since = process.cpuUsage();
  pass(handler, TIMED);
  const { user, system } = process.cpuUsage(since);
  return ((user + system) * 1000) / TIMED;
}

/** Less is allocated than the space of new objects holds: nothing is collected meanwhile. */
function bytesOf(handler) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  pass(handler, ALLOCATED);
  return (process.memoryUsage().heapUsed - before) / ALLOCATED;
}

async function loggedIn() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const ours = new Strategy(strategyOptions(service, `http://127.0.0.1:${port}`));
  const auth = new passport.Passport();
  auth.use(ours);
  auth.serializeUser((user, done) => done(null, user.id));
  auth.deserializeUser((id, done) => done(null, { id }));
  let seen;
  const app = express();
  app.use(session({ ...SESSION, store }), auth.session(), apiClient(ours));
  app.get('/login', auth.authenticate('oauth-app'));
  app.get('/callback', auth.authenticate('oauth-app'), (req, res) => {
    seen = req;
    res.redirect('/');
  });
  server.on('request', app);
  const connection = new Connection({ port });
  await logIn(connection, { port, user: '1' });
  connection.close();
  server.close();
  return { strategy: ours, seen };
}
