import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Packed, pack } from '../consumers/packed.js';
import { createProject, type Project } from '../consumers/project.js';
import { snippetsOf } from '../consumers/snippets.js';
import { chromiumPath, hasChromium } from '../support/chromium.js';
import { hasRedis, type RedisServer, startRedis } from '../support/redis-server.js';

let packed: Packed;
const projects: Project[] = [];
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => Promise.all([packed, ...projects].map((one) => one?.remove())));

const packages = ['express', 'express-session', 'passport'];
const types = ['@types/express', '@types/express-session', '@types/node', '@types/passport', '@types/passport-oauth2'];

/** Compiles files of a page, and runs a visitor of the application that they are, which has nothing to complain of. */
function visit(
  document: string,
  files: readonly string[],
  install: readonly string[] = [],
  args: readonly string[] = [],
) {
  return async (texts: TemplateStringsArray, ...values: readonly string[]): Promise<void> => {
    const project = await createProject(packed, [...packages, ...types, ...install]);
    projects.push(project);
    const snippets = snippetsOf(document).filter(({ file }) => files.includes(file));
    expect(snippets.map(({ file }) => file)).toEqual(files);
    await project.write({
      ...Object.fromEntries(snippets.map(({ file, text }) => [file, text])),
      'visitor.mjs': `${SERVING}\n${String.raw({ raw: texts }, ...values)}\nprocess.exit();\n`,
      'package.json': '{ "type": "module" }',
    });
    if (files.some((file) => file.endsWith('.ts'))) {
      const nodenext = { noEmit: false, module: 'nodenext', skipLibCheck: true, types: ['node', 'passport'] };
      expect((await project.tsc(nodenext)).stdout).toBe('');
    }
    expect(await project.node('visitor.mjs', ...args)).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  };
}

/** Serves an application on a free port, and logs in to it. */
const SERVING = `
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import express from 'express';
import session from 'express-session';
import passport from 'passport';
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

/** An application with sessions, and a login that ends at its first page. */
function appOf(strategy, sessions = {}) {
  passport.use(strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user, done) => done(null, user));
  const app = express();
  app.use(session({ secret: 'tests', resave: false, saveUninitialized: false, ...sessions }), passport.session());
  app.get('/login', passport.authenticate(strategy.name));
  app.get('/callback', passport.authenticate(strategy.name, { successRedirect: '/' }));
  return app;
}
`;

test('docs/tenants.md has an application of many shops, and a job for one', () =>
  visit('docs/tenants.md', ['shops.ts'])`
import { memoryTokenStore } from 'passport-oauth-app';
import { createApp } from './shops.js';
process.env.NODE_ENV = 'test';
const service = await startEmulator({ profile: 'shopify', tenants: ['acme', 'globex'] });
const allowedHosts = ['*.localhost:' + new URL(service.authUrl).port];
const findShop = async (shop) => (service.applications.some(({ tenant }) => tenant === shop) ? service.optionsOf(shop) : undefined);
const { app, shops } = createApp({ origin, allowedHosts, tokenStore: memoryTokenStore(), findShop });
server.on('request', app);
for (const shop of ['acme', 'globex']) {
  const { clientID } = service.optionsOf(shop);
  service.register({ clientID, redirectUrls: [origin + '/callback/' + shop] });
}
const page = origin + '/shops/acme';
assert.equal((await fetch(page)).status, 401);
const { response, fetch: browse } = await service.logIn(fetch, { login: page + '/login?returnTo=/shops/acme' });
assert.deepEqual(await response.json(), { data: { shop: { id: 'gid://shopify/Shop/acme', name: 'acme', myshopifyDomain: 'acme.myshopify.com' } } });
assert.equal((await browse(origin + '/shops/globex')).status, 401);
assert.equal((await browse(origin + '/shops/other/login')).status, 404);
service.expireAccessTokens();
const job = shops.client({ tenant: 'acme', grantId: 'offline' });
assert.equal((await job.post('/2026-10/graphql.json', { json: {} })).data.shop.name, 'acme');
assert.equal(service.requests.at(-1).headers['x-shopify-access-token'].length > 20, true);
await browse(origin + '/logout', { method: 'POST' });
assert.equal((await browse(page)).status, 401);
await shops.close();
await service.close();
`);

test('docs/jobs.md has an installed application, from the Installed event to the Uninstall event', () =>
  visit('docs/jobs.md', ['installed.ts', 'installed-by-user.ts'])`
import { SignJWT } from 'jose';
import { memoryTokenStore, Strategy } from 'passport-oauth-app';
import { installedByUser } from './installed-by-user.js';
import { installedApplication } from './installed.js';
// Express prints errors otherwise.
process.env.NODE_ENV = 'test';
const { service, options } = await start('/callback');
const limiter = (_req, _res, next) => next();
const strategy = new Strategy({ ...options, tokenStore: memoryTokenStore() });
const app = express().use('/by-user', installedByUser(strategy, limiter));
app.use(installedApplication({ ...options, tokenStore: memoryTokenStore() }, limiter));
server.on('request', app);
const post = async (path, event) => {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(event) })).status;
};
const event = service.install({ userId: '2' });
const frame = async (secret, claims = {}) => {
  const payload = { sub: '7', aud: options.clientID, domain: event.domain, ...claims };
  const token = await new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).setExpirationTime('1m').sign(Buffer.from(secret));
  return fetch(origin + '/frame?jwtToken=' + token);
};
assert.equal(await post('/installed', { ...event, appSecret: 'guessed' }), 403);
assert.equal(await post('/installed', event), 204);
const page = await frame(options.clientSecret);
assert.equal(page.status, 200);
assert.match(await page.text(), /Acme Storefront/);
// An event of another organization takes over nothing.
const other = { ...service.install({ userId: '1' }), domain: undefined, organizationId: event.organizationId };
assert.equal(await post('/installed', other), 204);
assert.match(await (await frame(options.clientSecret)).text(), /Acme Storefront/);
assert.match(await (await frame(options.clientSecret, { domain: null, sub: '1' })).text(), /Pocket Garden/);
assert.equal((await frame('another secret of some length')).status, 401);
assert.equal((await frame(options.clientSecret, { aud: 'another' })).status, 401);
assert.equal(await post('/uninstall', { ...event, appSecret: 'guessed' }), 403);
assert.equal((await frame(options.clientSecret)).status, 200);
assert.equal(await post('/uninstall', service.uninstall({ userId: '2' })), 204);
assert.equal((await frame(options.clientSecret)).status, 401);
// A code of Pocket Garden, sent as if it were of Acme.
const { domain } = event;
assert.equal(await post('/by-user/installed', { ...service.install({ userId: '1' }), domain }), 204);
assert.equal(await post('/by-user/installed', { code: 'guessed', domain }), 403);
assert.equal(await strategy.grant('installed ' + domain + ' 1'), undefined);
assert.equal((await strategy.grant('installed  1')).subject, '1');
`);

describe('docs/single-page-apps.md', () => {
  const page = 'docs/single-page-apps.md';

  test('has a server that answers 401 to a page that is not logged in, and the projects after the login', () =>
    visit(page, ['server.ts'])`
import { createApp } from './server.js';
const { service, options } = await start('/callback');
server.on('request', createApp(options));
assert.equal((await fetch(origin + '/api/projects', html)).status, 401);
const { response, fetch: browse } = await service.logIn(fetch, { login: origin + '/login?returnTo=/logged-in' });
assert.equal(new URL(response.url).pathname, '/logged-in');
const projects = await browse(origin + '/api/projects');
assert.ok((await projects.json()).data.length > 0);
assert.equal((await browse(origin + '/api/user')).status, 404);
`);

  test.skipIf(!hasChromium())('has a page that logs in by a popup in Chromium, and shows the projects', async () => {
    const snippets = snippetsOf(page);
    const files = snippets.filter(({ file }) => ['page.js', 'popup.js', 'logged-in.js'].includes(file));
    const markup = snippets.find(({ language }) => language === 'html');
    const served = [...files.map(({ file, text }) => [file, text]), ['index.html', markup?.text]];
    await visit(page, ['server.ts'], ['playwright-core'], [chromiumPath ?? ''])`
import { mkdirSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { createApp } from './server.js';
mkdirSync('public');
for (const [file, text] of ${JSON.stringify(served)}) writeFileSync('public/' + file, text);
const { options } = await start('/callback');
server.on('request', createApp(options));
const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox', '--disable-gpu'] });
const tab = await browser.newPage();
await tab.goto(origin + '/');
const [popup] = await Promise.all([tab.waitForEvent('popup'), tab.getByRole('button', { name: 'Log in' }).click()]);
await popup.getByRole('button', { name: /approve|allow/i }).click();
await tab.locator('li').first().waitFor();
assert.equal(await tab.getByRole('button').count(), 0);
// The browser says itself that the page is of this origin: what refuses this is the API, which has no such path.
const path = '/api/projects/7/files/1';
assert.equal(await tab.evaluate((path) => fetch(path, { method: 'DELETE' }).then(({ status }) => status), path), 404);
await browser.close();
`;
  });
});

describe('docs/accounts.md', () => {
  test('has an application that logs in with one service and connects another', () =>
    visit('docs/accounts.md', ['two-services.ts'])`
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
`);

  test('has an application that links services to its accounts, refuses links, unlinks, and removes accounts', () =>
    visit('docs/accounts.md', ['linked-services.ts'])`${LINKED_SERVICES}`);

  test('has a route that logs a browser out, and a function that logs out all browsers of a user', () =>
    visit('docs/accounts.md', ['log-out.ts', 'log-out-everywhere.ts'])`
import { apiClient, memoryTokenStore, requireAuthorization, Strategy } from 'passport-oauth-app';
import { logOutRoutes } from './log-out.js';
import { logOutEverywhere } from './log-out-everywhere.js';
const { service, options } = await start('/callback');
const strategy = new Strategy({ ...options, tokenStore: memoryTokenStore(), grantId: (_req, user) => user.id });
const app = appOf(strategy).use(apiClient(strategy));
app.get('/', (_req, res) => res.send('start'));
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
`);
});

describe('docs/migration.md', () => {
  test('has an application that logs in at GitLab, one person beside another, and goes on where tokens are unusable', () =>
    visit('docs/migration.md', ['after.cjs', 'take-over.cjs'])`
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
const service = await startEmulator({ profile: 'gitlab' });
service.register({ clientID: service.options.clientID, redirectUrls: [origin + '/callback'] });
Object.assign(process.env, { CLIENT_ID: service.options.clientID, CLIENT_SECRET: service.options.clientSecret, SESSION_SECRET: 'tests' });
await writeFile('users.cjs', \`
  const known = (exports.known = new Map());
  exports.save = (user, done) => done(null, known.set(user.id, user).get(user.id));
  exports.find = (id, done) => done(null, known.get(id));
  exports.removeTokens = (id) => void known.set(id, { id });
\`);
await writeFile('stores.cjs', \`
  exports.sessionStore = new (require('express-session').MemoryStore)();
  exports.tokenStore = require('passport-oauth-app').memoryTokenStore();
\`);
const { port } = server.address();
await new Promise((resolve) => server.close(resolve));
const text = await readFile('after.cjs', 'utf8');
const emulated = text.replace('...gitlab,', '...gitlab, ...' + JSON.stringify(service.options) + ',');
await writeFile('application.cjs', emulated.replaceAll('3000', String(port)));
const require = createRequire(import.meta.url);
require('./application.cjs');
const { known } = require('./users.cjs');

const browsers = [];
for (const user of ['1', '2']) {
  const { response, fetch: browse } = await service.logIn(fetch, { login: origin + '/login?returnTo=/projects', user });
  assert.equal(response.status, 200);
  assert.equal(new URL(response.url).pathname, '/projects');
  browsers.push(browse);
}
assert.deepEqual([...known.keys()], ['1', '2']);

const [one, two] = browsers;
const warnings = [];
console.warn = (warning) => warnings.push(warning);
known.set('1', { id: '1', refreshToken: 'two\\nlines' });
for (const _ of [1, 2]) assert.equal((await one(origin + '/projects')).status, 200);
assert.equal(warnings.length, 1);
assert.match(warnings[0], /tokens of user 1\. .*refreshToken/);
await two(origin + '/logout', { method: 'POST' });
assert.equal((await two(origin + '/projects')).status, 401);
assert.equal((await one(origin + '/projects')).status, 200);
`);

  test('has the options of a service without a provider', () =>
    visit('docs/migration.md', ['no-provider.cjs'])`
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { apiClient, memoryTokenStore } from 'passport-oauth-app';
const service = await startEmulator({
  profile: { tokenRequest: 'form', accessToken: 'opaque', apiPath: '/v1' },
  routes: [{ method: 'GET', path: '/me', handler: ({ user: { id, name } }) => ({ id: Number(id), name }) }],
});
const { authUrl, baseUrl, clientID, clientSecret } = service.options;
service.register({ clientID, redirectUrls: [origin + '/callback'] });
Object.assign(process.env, { CLIENT_ID: clientID, CLIENT_SECRET: clientSecret });
const text = (await readFile('no-provider.cjs', 'utf8'))
  .replace('https://accounts.tracker.example', authUrl)
  .replace('https://api.tracker.example', baseUrl)
  .replace('http://localhost:3000', origin)
  .replace('issues:read', 'project');
await writeFile('emulated.cjs', text);
const { createStrategy } = createRequire(import.meta.url)('./emulated.cjs');
const strategy = createStrategy(memoryTokenStore(), (_accessToken, _refreshToken, { id, displayName }, done) => done(null, { id, displayName }));
const app = appOf(strategy).use(apiClient(strategy));
app.get('/', (req, res) => res.json([req.user, req.apiClient.grantId]));
server.on('request', app);
for (const [user, displayName] of [['1', 'Ada Ferrant'], ['2', 'Ben Okafor']]) {
  const { response } = await service.logIn(fetch, { login: origin + '/login', user });
  assert.deepEqual(await response.json(), [{ id: user, displayName }, user]);
}
`);
});

describe.skipIf(!hasRedis())('docs/migration.md, while requests run', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test.each(['session', 'serialised user', 'user table'])(
    'takes over the tokens of 20 users out of the %s, in two processes',
    (place) =>
      visit('docs/migration.md', ['take-over.cjs'], ['redis', 'connect-redis'], [redis.url, place])`${TAKE_OVER}`,
  );
});

/** An application whose former code kept expired tokens, in two processes; each user sends three requests to each at once. */
const TAKE_OVER = `
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { RedisStore } from 'connect-redis';
import { apiClient, Strategy } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { takeOver } from './take-over.cjs';

const [redisUrl, place, given] = process.argv.slice(2);
if (given) await serve(JSON.parse(given));
else await visitAll();

async function serve(options) {
  const redis = await createClient({ url: redisUrl }).on('error', console.error).connect();
  const table = place + ' users';
  const find = async (id) => JSON.parse((await redis.hGet(table, id)) ?? 'null') ?? undefined;
  const former = {
    session: { findTokens: (req) => req.session.tokens, removeTokens: (req) => void delete req.session.tokens },
    'serialised user': {
      findTokens: ({ user: { refreshToken } }) => refreshToken && { refreshToken },
      removeTokens: (req) => void delete req.session.passport.user.refreshToken,
    },
    'user table': { findTokens: (req) => find(req.user.id), removeTokens: (req) => redis.hDel(table, req.user.id) },
  }[place];
  const strategy = new Strategy({ ...options, tokenStore: redisTokenStore(redis), grantId: (_req, user) => user.id });
  const app = appOf(strategy, { store: new RedisStore({ client: redis, prefix: place }) });
  // What the former code has left: a session, and tokens that have expired.
  app.post('/former/:id', express.json(), async (req, res) => {
    const inUser = place === 'serialised user' ? req.body : {};
    await new Promise((resolve) => req.logIn({ id: req.params.id, ...inUser }, resolve));
    if (place === 'session') req.session.tokens = req.body;
    if (place === 'user table') await redis.hSet(table, req.params.id, JSON.stringify(req.body));
    res.end();
  });
  app.use(takeOver(strategy, former), apiClient(strategy));
  app.get('/projects', (req, res, next) => {
    req.apiClient.projects().then((projects) => res.json(projects)).catch(next);
  });
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).send(error.code));
  server.on('request', app);
  process.send(origin);
  await once(process, 'disconnect');
}

async function visitAll() {
  const { service, options } = await start('/callback');
  const users = Array.from({ length: 20 }, (_, index) => 'u' + index);
  for (const id of users) service.addUser({ id, name: id, projects: [{ id: 1, name: 'of ' + id }] });
  const workers = [1, 2].map(() => fork(process.argv[1], [redisUrl, place, JSON.stringify(options)]));
  const origins = (await Promise.all(workers.map((worker) => once(worker, 'message')))).map(([url]) => url);
  const cookies = await Promise.all(
    users.map(async (id) => {
      const tokens = { ...(await formerTokens(service, options, id)), expiresAt: Date.now() - 1000 };
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(origins[0] + '/former/' + id, { method: 'POST', headers, body: JSON.stringify(tokens) });
      return response.headers.getSetCookie()[0].split(';')[0];
    }),
  );
  service.requests.length = 0;
  const answers = await Promise.all(
    users.flatMap((id, user) =>
      [...origins, ...origins, ...origins].map(async (url) => {
        for (;;) {
          const response = await fetch(url + '/projects', { headers: { cookie: cookies[user] } });
          // On a busy machine the store may be slow for 120 visits at once: nothing is lost, and the visitor tries again.
          if (response.status === 503) continue;
          return response.status + ' ' + ((await response.json()).data?.[0].data.name === 'of ' + id);
        }
      }),
    ),
  );
  assert.deepEqual([...new Set(answers)], ['200 true']);
  // A former refresh token that is put back would be sent a second time.
  assert.equal(service.requests.filter(({ path }) => path === '/oauth/token').length, users.length);
  for (const worker of workers) worker.disconnect();
}

async function formerTokens(service, { authUrl, clientID, clientSecret, callbackURL }, user) {
  const query = new URLSearchParams({ client_id: clientID, redirect_uri: callbackURL, response_type: 'code', scope: 'project' });
  const callback = await service.approve(authUrl + '/oauth/authorize?' + query + '&state=' + 's'.repeat(43), { user });
  const body = JSON.stringify({
    grant_type: 'authorization_code', client_id: clientID, client_secret: clientSecret,
    redirect_uri: callbackURL, code: new URL(callback).searchParams.get('code'),
  });
  const response = await fetch(authUrl + '/oauth/token', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { access_token: accessToken, refresh_token: refreshToken } = await response.json();
  return { accessToken, refreshToken };
}
`;

/** Two people with accounts of their own, and two services. */
const LINKED_SERVICES = `
import { memoryTokenStore } from 'passport-oauth-app';
import { createApp } from './linked-services.js';
const [tracker, translations] = [await start('/services/tracker/callback'), await start('/services/translations/callback')];
const users = new Map(['ada', 'ben'].map((id) => [id, { id }]));
const links = new Map();
const accounts = {
  signIn: async (name) => users.get(name),
  find: async (id) => users.get(id),
  remove: async (id) => void users.delete(id),
  link: async (id, service, serviceUserId) => {
    const key = service + ' ' + serviceUserId;
    if ((links.get(key) ?? id) !== id) return false;
    links.set(key, id);
    return true;
  },
  unlink: async (id, service) => {
    for (const [key, owner] of links) if (owner === id && key.startsWith(service + ' ')) links.delete(key);
  },
  linkedServices: async (id) => [...links].filter(([, owner]) => owner === id).map(([key]) => key.split(' ')[0]),
};
const tokenStore = memoryTokenStore();
const app = createApp(accounts, {
  tracker: { ...tracker.options, tokenStore },
  translations: { ...translations.options, tokenStore },
});
app.use((error, _req, res, _next) => res.status(error.status).end(error.strategy));
server.on('request', app);

/** A browser that is signed in: a fetch that keeps its cookie. */
async function signIn(name) {
  const body = new URLSearchParams({ name, password: 'any' });
  const response = await fetch(origin + '/sign-in', { method: 'POST', body, redirect: 'manual' });
  const cookie = response.headers.getSetCookie()[0].split(';')[0];
  return (input, init) => {
    const request = new Request(input, init);
    request.headers.set('cookie', [cookie, request.headers.get('cookie')].filter(Boolean).join('; '));
    return fetch(request);
  };
}
const link = (browse, { service }, name, user) =>
  service.logIn(browse, { login: origin + '/services/' + name + '/link', user });
const linked = async (browse) => (await browse(origin + '/services')).json();
const projects = async (browse, name) => {
  const response = await browse(origin + '/services/' + name + '/projects');
  return response.ok ? (await response.json()).data[0].data.name : response.status;
};

const [ada, ben] = [await signIn('ada'), await signIn('ben')];
await link(ada, tracker, 'tracker', '1');
await link(ada, translations, 'translations', '2');
assert.deepEqual(await linked(ada), ['tracker', 'translations']);
assert.equal(await projects(ada, 'tracker'), 'Pocket Garden');
assert.equal(await projects(ada, 'translations'), 'Acme Storefront');
assert.deepEqual(await linked(ben), []);
assert.equal(await projects(ben, 'tracker'), 401);

// The account of the service is Ada's: the link is refused, and nothing is stored.
await link(ben, tracker, 'tracker', '1');
assert.equal(await projects(ben, 'tracker'), 401);
assert.equal(await projects(ada, 'tracker'), 'Pocket Garden');

// A logout of the application keeps the links; unlinking ends one of them.
await ada(origin + '/sign-out', { method: 'POST' });
const again = await signIn('ada');
assert.equal(await projects(again, 'tracker'), 'Pocket Garden');
await again(origin + '/services/tracker/unlink', { method: 'POST' });
assert.equal(await projects(again, 'tracker'), 401);
assert.deepEqual(await linked(again), ['translations']);
await again(origin + '/delete-account', { method: 'POST' });
users.set('ada', { id: 'ada' });
assert.equal(await projects(await signIn('ada'), 'translations'), 401);
`;
