// Counts the functions of the package that one request of a page enters: node bench/alone/entered.mjs. Needs the built package.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { startEmulator } from '../../dist/emulator.js';
import { apiClient, Strategy } from '../../dist/index.js';
import { SESSION } from '../apps/common.mjs';

const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();
const callbackURL = `http://127.0.0.1:${port}/callback`;
const service = await startEmulator();
service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
const strategy = new Strategy({ ...service.options, callbackURL, scope: 'project' });
const auth = new passport.Passport();
auth.use(strategy);
auth.serializeUser((user, done) => done(null, user.id));
auth.deserializeUser((id, done) => done(null, { id }));
const app = express();
app.use(session({ ...SESSION, store: new session.MemoryStore() }), auth.session(), apiClient(strategy));
app.get('/login', auth.authenticate('oauth-app'));
app.get('/callback', auth.authenticate('oauth-app'), (_req, res) => res.end('in'));
app.get('/page', (_req, res) => res.end('{}'));
app.get('/projects', async (req, res) => res.json(await req.apiClient.projects()));
server.on('request', app);

const { cookie } = await service.logIn(fetch, { login: `http://127.0.0.1:${port}/login`, userId: '1' });
const visit = async (path) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { cookie } });
  if (response.status !== 200) throw new Error(await response.text());
};
const inspector = new Session();
inspector.connect();
await inspector.post('Profiler.enable');
for (const path of ['/page', '/projects']) {
  for (let time = 0; time < 3; time += 1) await visit(path);
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await visit(path);
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  await inspector.post('Profiler.stopPreciseCoverage');
  const counts = new Map();
  for (const { functions } of result.filter(({ url }) => url.endsWith('/dist/chunks/main.js')))
    for (const { functionName, ranges } of functions)
      if (ranges[0].count > 0) counts.set(functionName, (counts.get(functionName) ?? 0) + ranges[0].count);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  console.log(path, total, [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(', '));
}
server.closeAllConnections();
server.close();
await strategy.close();
await service.close();
