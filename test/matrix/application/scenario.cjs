const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { Browser } = require('./browser.cjs');

/** Walks through everything that a user of an application meets, and prints what was shown. The process then ends by itself. */
async function run(modules) {
  const { combination, startEmulator } = modules;
  const service = await startEmulator({ accessTokenLifetime: 3600 });
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  service.register({ clientID: service.options.clientID, redirectUrls: [`${url}/callback`] });
  let passedMs = 0;
  const { app, strategy } = await applicationOf(combination).createApplication(modules, combination, {
    ...service.options,
    callbackURL: `${url}/callback`,
    scope: ['project', 'tm'],
    clock: () => Date.now() + passedMs,
  });
  server.on('request', app);
  const advance = (seconds) => {
    passedMs += seconds * 1000;
    service.advance(seconds);
  };
  const shown = [];
  const world = { url, service, browser: new Browser(url), advance, shows: (sentence) => shown.push(sentence) };
  for (const part of [refuse, logIn, refresh, survive, decline, forge, logOut]) await part(world);
  await strategy.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await service.close();
  console.log(JSON.stringify(shown));
}

function applicationOf({ framework }) {
  return framework.startsWith('NestJS') ? require('./nest-application.cjs') : require('./express-application.cjs');
}

const json = { accept: 'application/json' };

async function refuse({ browser, shows }) {
  assert.equal((await browser.visit('/projects', json)).status, 401);
  shows('a script that is not logged in gets a 401');
}

async function logIn({ browser, service, shows }) {
  const { location } = await browser.open('/projects');
  assert.ok(location?.startsWith(`${service.authUrl}/oauth/authorize?`), `sent to ${location}`);
  const page = await browser.open(await service.approve(location));
  assert.equal(page.status, 200, page.text);
  assert.ok(JSON.parse(page.text).data.length > 0);
  shows('a browser logs in and comes back to its page, which calls the API');

  const { session, user } = JSON.parse((await browser.visit('/session')).text);
  assert.equal(user.id, '1');
  assert.equal(typeof session['oauth-app'], 'string');
  assert.ok(!JSON.stringify(session).includes('eyJ'), 'the session holds a token');
  shows('the session refers to the grant and holds no token');
}

async function refresh({ browser, service, advance, shows }) {
  const before = tokenRequests(service);
  advance(3601);
  const pages = await Promise.all(Array.from({ length: 10 }, () => browser.visit('/projects', json)));
  assert.deepEqual(
    pages.map(({ status }) => status),
    pages.map(() => 200),
  );
  assert.equal(tokenRequests(service), before + 1);
  shows('ten requests with an expired token share one refresh');
}

async function survive({ browser, service, shows }) {
  service.expireAccessTokens();
  assert.equal((await browser.visit('/projects', json)).status, 200);
  shows('a token that the API refuses is replaced');
}

async function decline({ url, service, shows }) {
  const browser = new Browser(url);
  const { location } = await browser.visit('/login');
  const page = await browser.open(await service.approve(location, { decline: true }));
  assert.ok(page.status === 401 || page.text.includes('declined'), page.text);
  assert.equal((await browser.visit('/projects', json)).status, 401);
  shows('a declined login lets nobody in');
}

async function forge({ url, service, shows }) {
  const before = tokenRequests(service);
  const page = await new Browser(url).visit('/forged?code=made-up&state=made-up');
  assert.equal(page.status, 403, page.text);
  assert.equal(tokenRequests(service), before);
  shows('a forged callback gets a 403, and no request leaves');
}

async function logOut({ browser, shows }) {
  const { status } = await browser.visit('/logout', { method: 'POST' });
  assert.ok(status < 400, `logout answered ${status}`);
  assert.equal((await browser.visit('/projects', json)).status, 401);
  shows('a logout ends the login');
}

function tokenRequests(service) {
  return service.requests.filter(({ path }) => path === '/oauth/token').length;
}

module.exports = { run };
