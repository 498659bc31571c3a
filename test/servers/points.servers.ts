import { execFile } from 'node:child_process';
import { memoryTokenStore } from 'passport-oauth-app';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../support/open-store.mjs';
import { Worker } from '../support/processes.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import type { AuthorizationServer } from './authorization-server.js';
import { lineOf, writeList } from './list.js';
import { observe } from './observation.js';
import { SERVERS } from './servers.js';
import { Setting } from './setting.js';

/** What is tried with every server. The titles stand in docs/figures/servers.md, in this order. */
const POINTS: readonly (readonly [title: string, check: (setting: Setting, server: AuthorizationServer) => unknown])[] =
  [
    ['two users log in and are two identities', logIn],
    ['an API call has the token of its user', callApi],
    ['an expired token is refreshed once', refresh],
    ['200 requests with an expired token send one token request, in one process and in two', refreshAtOnce],
    ['a declined login logs no user in', decline],
    ['an authorization that is revoked at the server ends the grant', revoke],
    ['a refresh whose answer is lost ends the login only where the server accepts no token twice', loseAnswer],
    ['a logout ends the login, and the next login works', logOut],
    ['a wrong client secret logs no user out', useWrongSecret],
    ['an outage of the server logs no user out', stopServer],
    ['`npx passport-oauth-app doctor` finds a wrong client secret, and options with which a user logs in', askDoctor],
  ];

const lines: string[] = [];
const titles = POINTS.map(([title]) => title);
const names = SERVERS.map(({ name }) => name);
afterAll(() => writeList(titles, names, lines));

describe.each(SERVERS)('$name', (server) => {
  const missing = server.version === undefined;
  if (missing && process.env.REQUIRE_SERVICES === '1') throw new Error(`${server.packages.join(', ')}: not installed`);
  let setting: Setting;
  let passed = 0;
  beforeAll(async () => {
    if (!missing) setting = await Setting.start(server);
  });
  afterAll(async () => {
    if (passed === POINTS.length) lines.push(lineOf(server, await observe(setting)));
    await setting?.close();
  });

  it.skipIf(missing).each(POINTS)('%s', async (_title, check) => {
    await setting.open();
    await check(setting, server);
    passed += 1;
  });
});

async function logIn(setting: Setting): Promise<void> {
  const [ada, ben] = [await setting.logIn('ada'), await setting.logIn('ben')];
  const users = [(await setting.home(ada)).user, (await setting.home(ben)).user];
  expect(users).toEqual([{ id: expect.any(String) }, { id: expect.any(String) }]);
  expect(users[0]?.id).not.toBe(users[1]?.id);
  expect((await setting.home(await setting.logIn('ada'))).user).toEqual(users[0]);
}

async function callApi(setting: Setting): Promise<void> {
  for (const name of ['ada', 'ben']) {
    const browser = await setting.logIn(name);
    const { user } = await setting.home(browser);
    const page = await setting.projects(browser);
    expect([page.status, page.json()]).toEqual([200, user]);
  }
}

async function refresh(setting: Setting): Promise<void> {
  const browser = await setting.logIn();
  const [before, { accessToken, refreshToken }] = [setting.refreshes.length, setting.lastTokens];
  expect((await setting.projects(browser)).status).toBe(200);
  expect(setting.refreshes.length).toBe(before);
  setting.advance();
  const page = await setting.projects(browser);
  expect([page.status, page.json()]).toEqual([200, (await setting.home(browser)).user]);
  const requests = setting.refreshes.slice(before);
  expect(requests.map(({ parameters }) => parameters.get('refresh_token'))).toEqual([refreshToken]);
  expect(requests[0]?.answer.access_token).not.toBe(accessToken);
}

async function refreshAtOnce(setting: Setting): Promise<void> {
  const browser = await setting.logIn();
  const { user } = await setting.home(browser);
  let before = setting.refreshes.length;
  setting.advance();
  const pages = await Promise.all(Array.from({ length: 200 }, () => setting.projects(browser)));
  expect(pages.map((page) => [page.status, page.json()])).toEqual(pages.map(() => [200, user]));
  expect(setting.refreshes.length).toBe(before + 1);

  if (!hasRedis()) return;
  const redis = await startRedis();
  const store = { redis: redis.url, lease: 90 };
  const { tokenStore, close } = await openStore(store);
  const workers: Worker[] = [];
  try {
    await setting.open({ tokenStore, grantId: (_req, { id }: { id: string }) => id });
    await setting.logIn();
    before = setting.refreshes.length;
    const { clock: _clock, userProfile: _userProfile, ...options } = setting.options;
    for (const _ of ['first', 'second']) workers.push(await Worker.start(store, options));
    const seconds = setting.advance();
    await Promise.all(workers.map((worker) => worker.advance(seconds)));
    const asked = workers.flatMap((worker) => Array.from({ length: 100 }, () => worker.ask(user?.id ?? '')));
    const answers = await Promise.all(asked);
    expect(setting.refreshes.length).toBe(before + 1);
    const answer = { status: 200, text: setting.lastTokens.accessToken };
    expect(answers).toEqual(answers.map(() => answer));
  } finally {
    for (const worker of workers) await worker.close();
    await setting.open();
    await close();
    await redis.stop();
  }
}

async function decline(setting: Setting): Promise<void> {
  const before = setting.gateway.tokenRequests.length;
  const { browser, callback } = await setting.visitServer('cleo', { declines: true });
  expect([callback.status, callback.headers.get('location')]).toEqual([302, '/declined']);
  expect(await setting.home(browser)).toEqual({ user: null, authorized: false });
  expect(setting.gateway.tokenRequests.length).toBe(before);
}

async function revoke(setting: Setting): Promise<void> {
  const browser = await setting.logIn();
  await setting.running.revoke(setting.lastTokens, 'ada');
  const page = await setting.projects(browser);
  expect([page.status, page.json().name]).toEqual([401, 'NotAuthorizedError']);
  expect(await setting.home(browser)).toMatchObject({ authorized: false });
}

async function loseAnswer(setting: Setting, { lostAnswer }: AuthorizationServer): Promise<void> {
  const browser = await setting.logIn();
  const { user } = await setting.home(browser);
  setting.advance();
  setting.gateway.loseNextAnswer();
  const before = setting.refreshes.length;
  expect((await setting.projects(browser)).status).toBe(503);
  expect(setting.refreshes.length).toBe(before + 1);
  expect(await setting.home(browser)).toMatchObject({ user });
  setting.advance(31);
  const { status } = await setting.projects(browser);
  expect({ 200: 'kept', 401: 'lost' }[status]).toBe(lostAnswer);
  expect((await setting.home(browser)).authorized).toBe(lostAnswer === 'kept');
}

async function logOut(setting: Setting): Promise<void> {
  const browser = await setting.logIn();
  expect((await setting.logOut(browser)).status).toBe(200);
  expect(await setting.home(browser)).toEqual({ user: null, authorized: false });
  expect((await setting.projects(browser)).status).toBe(401);
  expect((await setting.projects(await setting.logIn())).status).toBe(200);
}

async function useWrongSecret(setting: Setting): Promise<void> {
  const tokenStore = memoryTokenStore();
  await setting.open({ tokenStore });
  const browser = await setting.logIn();
  const { user } = await setting.home(browser);
  await setting.reopen({ tokenStore, clientSecret: 'wrong' });
  setting.advance();
  expect((await setting.projects(browser)).json()).toMatchObject({
    name: expect.stringMatching(/^Token(Response)?Error$/),
  });
  expect(await setting.home(browser)).toEqual({ user, authorized: true });
  await setting.reopen({ tokenStore });
  const page = await setting.projects(browser);
  expect([page.status, page.json()]).toEqual([200, user]);
}

async function stopServer(setting: Setting): Promise<void> {
  const browser = await setting.logIn();
  const { user } = await setting.home(browser);
  await setting.running.stop();
  try {
    setting.advance();
    const page = await setting.projects(browser);
    expect([page.status, page.json().name]).toEqual([503, 'ServiceUnavailableError']);
    expect(await setting.home(browser)).toEqual({ user, authorized: true });
  } finally {
    await setting.running.restart();
  }
  setting.advance(31);
  const page = await setting.projects(browser);
  expect([page.status, page.json()]).toEqual([200, user]);
}

async function askDoctor(setting: Setting, { options: { authorizationPath, tokenPath } }: AuthorizationServer) {
  const { origin, client } = setting.place;
  const paths = { 'authorization-path': authorizationPath ?? '/oauth/authorize', 'token-path': tokenPath };
  const addresses = { 'auth-url': origin, 'base-url': setting.options.baseUrl, 'callback-url': client.redirectUri };
  const doctor = (secret: string): Promise<{ readonly exitCode: unknown; readonly stdout: string }> =>
    new Promise((resolve) => {
      const flags = { ...paths, ...addresses, 'client-id': client.id, 'client-secret': secret };
      const args = ['dist/cli.js', 'doctor', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)];
      execFile(process.execPath, args, (error, stdout) => resolve({ exitCode: error?.code ?? 0, stdout }));
    });
  const { exitCode, stdout } = await doctor(client.secret);
  expect(exitCode, stdout).toBe(0);
  expect(stdout).not.toContain(client.secret);
  const lines = stdout.matchAll(/^ {2}(\w+): (?:'(.*)'|true),$/gm);
  const printed = Object.fromEntries([...lines].map(([, name, text]) => [name, text ?? true]));
  await setting.open({ tokenRequest: 'json', clientAuthentication: 'body', pkce: false, ...printed });
  await setting.logIn();
  const wrong = await doctor('wrong');
  expect(wrong.stdout).toMatch(/^fail +token endpoint: .* refuses the client/m);
  expect(wrong.exitCode).toBe(1);
}
