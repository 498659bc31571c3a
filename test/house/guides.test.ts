import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Packed, pack } from '../consumers/packed.js';
import { createProject, type Outcome, type Project } from '../consumers/project.js';
import { snippetsOf } from '../consumers/snippets.js';

let packed: Packed;
const projects: Project[] = [];
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => Promise.all([packed, ...projects].map((one) => one?.remove())));

const packages = ['express', 'express-session', 'passport'];
const types = ['@types/express', '@types/express-session', '@types/node', '@types/passport', '@types/passport-oauth2'];

/** Compiles files of a page, and runs a visitor of the application that they are. */
async function visit(document: string, files: readonly string[], visitor: string): Promise<Outcome> {
  const project = await createProject(packed, [...packages, ...types]);
  projects.push(project);
  const snippets = snippetsOf(document).filter(({ file }) => files.includes(file));
  expect(snippets.map(({ file }) => file)).toEqual(files);
  await project.write({
    ...Object.fromEntries(snippets.map(({ file, text }) => [file, text])),
    'visitor.mjs': `${SERVING}\n${visitor}`,
    'package.json': '{ "type": "module" }',
  });
  const compiled = await project.tsc({ noEmit: false, module: 'nodenext', skipLibCheck: true, types: ['node'] });
  expect(compiled.stdout).toBe('');
  return project.node('visitor.mjs');
}

/** Serves an application on a free port, and logs in to it. */
const SERVING = `
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { startEmulator } from 'passport-oauth-app/emulator';

const server = createServer();
await new Promise((resolve) => server.listen(0, resolve));
const origin = \`http://localhost:\${server.address().port}\`;
async function start(path) {
  const service = await startEmulator();
  const callbackURL = origin + path;
  service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
  return { service, options: { ...service.options, callbackURL, scope: ['project'] } };
}
const html = { headers: { accept: 'text/html' } };
`;
const CLEAN = { exitCode: 0, stdout: '', stderr: '' };

describe('docs/single-page-apps.md', () => {
  test('has a server that answers 401 to a page that is not logged in, and the projects after the login', async () => {
    const outcome = await visit(
      'docs/single-page-apps.md',
      ['server.ts'],
      `
import { createApp } from './server.js';
const { service, options } = await start('/callback');
server.on('request', createApp(options));
assert.equal((await fetch(origin + '/api/projects', html)).status, 401);
const { response, fetch: browse } = await service.logIn(fetch, { login: origin + '/login?returnTo=/logged-in' });
assert.equal(new URL(response.url).pathname, '/logged-in');
const projects = await browse(origin + '/api/projects');
assert.ok((await projects.json()).data.length > 0);
process.exit();
`,
    );
    expect(outcome).toEqual(CLEAN);
  });
});

describe('docs/several-services.md', () => {
  test('has an application that logs in with one service and connects another', async () => {
    const outcome = await visit(
      'docs/several-services.md',
      ['two-services.ts'],
      `
import { createApp } from './two-services.js';
const first = await start('/callback');
const second = await start('/connected');
server.on('request', createApp(first.options, second.options));
const { fetch: browse } = await first.service.logIn(fetch, { login: origin + '/login' });
const before = await (await browse(origin + '/')).json();
assert.ok(before.projects.data.length > 0);
assert.equal(before.issues, undefined);
await second.service.logIn(browse, { login: origin + '/connect', user: '2' });
const after = await (await browse(origin + '/')).json();
assert.deepEqual(after.projects, before.projects);
assert.ok(after.issues.data.length > 0);
process.exit();
`,
    );
    expect(outcome).toEqual(CLEAN);
  });
});

describe('docs/log-out.md', () => {
  test('has a route that logs a browser out, and a function that logs out all browsers of a user', async () => {
    const outcome = await visit(
      'docs/log-out.md',
      ['log-out.ts', 'log-out-everywhere.ts'],
      `
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, memoryTokenStore, requireAuthorization, Strategy } from 'passport-oauth-app';
import { logOutRoutes } from './log-out.js';
import { logOutEverywhere } from './log-out-everywhere.js';
const { service, options } = await start('/callback');
const strategy = new Strategy({ ...options, tokenStore: memoryTokenStore(), grantId: (_req, user) => user.id });
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));
const app = express();
app.use(session({ secret: 'tests', resave: false, saveUninitialized: false }), passport.session(), apiClient(strategy));
app.get('/', (_req, res) => res.send('start'));
app.get('/login', passport.authenticate('oauth-app'));
app.get('/callback', passport.authenticate('oauth-app', { successRedirect: '/' }));
app.get('/mine', requireAuthorization(), (req, res) => res.send(req.apiClient.grantId));
app.use((error, _req, res, _next) => res.status(error.status).end());
logOutRoutes(app, strategy);
server.on('request', app);
const logIn = async () => (await service.logIn(fetch, { login: origin + '/login' })).fetch;
const status = async (browse) => (await browse(origin + '/mine')).status;

const [one, other] = [await logIn(), await logIn()];
assert.deepEqual([await status(one), await status(other)], [200, 200]);
const userId = await (await one(origin + '/mine')).text();
await logOutEverywhere(strategy, [userId]);
assert.deepEqual([await status(one), await status(other)], [401, 401]);

const third = await logIn();
assert.equal(await status(third), 200);
await third(origin + '/logout', { method: 'POST' });
assert.equal(await status(third), 401);
process.exit();
`,
    );
    expect(outcome).toEqual(CLEAN);
  });
});
