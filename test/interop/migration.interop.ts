import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { repository } from '../consumers/packed.js';
import { type RunningApplication, startApplication } from '../consumers/stranger.js';
import { freePort } from '../support/service-process.js';

const USERS = `
  const known = new Map();
  exports.save = async (user, done) => (known.set(user.id, user), done?.(null, user));
  exports.find = (id, done) => done(null, known.get(id));
`;

let folder: string;
let service: Emulator;
let application: RunningApplication;
let origin: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'passport-oauth-app-before-'));
  const port = await freePort();
  origin = `http://localhost:${port}`;
  service = await startEmulator({ profile: 'gitlab', refreshTokenReuse: 'revoke' });
  const { clientID, clientSecret, authUrl } = service.options;
  service.register({ clientID, redirectUrls: [`${origin}/callback`] });
  const before = await readFile(join(repository, 'test/interop/before.cjs'), 'utf8');
  const emulated = before.replaceAll('https://gitlab.com', authUrl).replaceAll('3000', String(port));
  await writeFile(join(folder, 'before.cjs'), emulated);
  await writeFile(join(folder, 'users.cjs'), USERS);
  const modules = ['test/interop/node_modules', 'node_modules'].map((path) => join(repository, path));
  const variables = {
    ...{ CLIENT_ID: clientID, CLIENT_SECRET: clientSecret, SESSION_SECRET: 'tests' },
    NODE_PATH: modules.join(delimiter),
  };
  application = await startApplication(folder, join(folder, 'before.cjs'), variables, port);
});
afterEach(async () => {
  await application?.stop();
  await Promise.all([service?.close(), rm(folder, { recursive: true, force: true })]);
});

test('the application before its migration logs in at GitLab, refreshes at each request, and is lost by a lost answer', async () => {
  const { response, fetch: browse } = await service.logIn(fetch, { login: `${origin}/login` });
  expect([response.status, response.url]).toEqual([200, `${origin}/projects`]);
  expect((await browse(`${origin}/projects`)).status).toBe(200);
  const refreshes = service.requests.filter(({ body }) => `${JSON.stringify(body)}`.includes('refresh_token'));
  expect(refreshes).toHaveLength(2);
  service.fail('token', { status: 503, afterEffect: true });
  const statuses = [await browse(`${origin}/projects`), await browse(`${origin}/projects`)].map(({ status }) => status);
  expect(statuses).toEqual([503, 400]);
});
