import { once } from 'node:events';
import { createServer, ServerResponse } from 'node:http';
import session from 'express-session';
import { apiClient, Strategy } from '../../dist/index.js';
import { loginApp } from '../apps/common.mjs';
import { Connection } from '../lib/connection.mjs';
import { logIn } from '../lib/log-in.mjs';
import { strategyOptions } from '../lib/seeded-grant.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/**
 * The middleware alone, without HTTP: passes of a request whose grant is in the cache. One user has logged in through an
 * application, so that session and grant are what a login leaves.
 */
const WARM_UPS = 300_000;
const TIMED = 1_000_000;
const ALLOCATED = 20_000;

const store = new session.MemoryStore();
const { strategy, seen } = await loggedIn();
const middleware = apiClient(strategy);
const nothing = (_req, _res, next) => next();
/** Express' own, not sent yet. */
const response = Object.setPrototypeOf(new ServerResponse(seen), Object.getPrototypeOf(seen.res));

/** What the middleware looks at, as Express, express-session and Passport leave it. */
class Request {
  method = 'GET';
  url = '/';
  originalUrl = '/';
  headers = seen.headers;
  socket = seen.socket;
  sessionStore = store;
  sessionID = seen.sessionID;
  session = seen.session;
  user = seen.user;
  logOut = seen.logOut;
  logout = seen.logout;
  res = response;
}
Object.setPrototypeOf(Request.prototype, Object.getPrototypeOf(seen));

answerTasks(undefined, { measure });

/** @returns {{ ns: number, bytes: number }} of one pass, without what making the request takes */
function measure() {
  for (const handler of [nothing, middleware]) pass(handler, WARM_UPS);
  return { ns: nsOf(middleware) - nsOf(nothing), bytes: bytesOf(middleware) - bytesOf(nothing) };
}

let passed = 0;
function next() {
  passed += 1;
}

function pass(handler, times) {
  passed = 0;
  for (let time = 0; time < times; time += 1) {
    const req = new Request();
    handler(req, response, next);
    if (handler === middleware && !req.apiClient.authorized) throw new Error('The grant was not found');
  }
  if (passed !== times) throw new Error('Not every request has passed');
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
  const ours = new Strategy(strategyOptions(argument.service, `http://127.0.0.1:${port}`));
  const { app, auth } = loginApp({ store, strategy: ours });
  let request;
  app.use(apiClient(ours));
  app.get('/login', auth.authenticate('oauth-app'));
  app.get('/callback', auth.authenticate('oauth-app'), (req, res) => {
    request = req;
    res.redirect('/');
  });
  server.on('request', app);
  const connection = new Connection({ port });
  await logIn(connection, { port, user: '1' });
  connection.close();
  server.close();
  return { strategy: ours, seen: request };
}
