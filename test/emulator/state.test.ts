import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, afterEach, expect, test } from 'vitest';
import {
  authorizeUrl,
  body,
  codeFor,
  exchange,
  projects,
  refresh,
  service,
  startService,
  type Tokens,
  tokensFor,
} from './plain-client.js';

const folder = mkdtempSync(join(tmpdir(), 'emulator-state-'));
const state = join(folder, 'state.json');
afterEach(async () => {
  await service.close();
  rmSync(state, { force: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

async function start(options: EmulatorOptions = {}): Promise<void> {
  await startService({ state, ...options });
}

/** Starts the service again, with its state changed in between. */
async function restart(options: EmulatorOptions = {}, change?: (saved: Saved) => void): Promise<void> {
  await service.close();
  if (change) {
    const saved: Saved = JSON.parse(readFileSync(state, 'utf8'));
    change(saved);
    writeFileSync(state, JSON.stringify(saved));
  }
  await start(options);
}

interface Saved {
  readonly codes: [code: string, issued: unknown][];
  readonly grants: { readonly grants: { readonly id: number }[]; readonly serials: [grants: number] };
}

test('logins, codes, users, applications and time survive a restart', async () => {
  await start({ codeLifetime: 600 });
  const redirect_uri = 'http://localhost:9/callback';
  service.register({ clientID: service.options.clientID, redirectUrls: [redirect_uri] });
  service.addUser({ id: '3', name: 'Cleo', domain: 'globex' });
  const { access_token, refresh_token } = await tokensFor('3');
  const code = await codeFor();
  service.advance(100);
  await restart({ codeLifetime: 600 });
  expect((await projects(access_token)).status).toBe(200);
  expect((await refresh(refresh_token)).status).toBe(200);
  expect((await refresh(refresh_token)).status).toBe(400);
  expect((await exchange(code)).status).toBe(200);
  expect(service.users.map(({ name }) => name)).toContain('Cleo');
  expect(await service.approve(authorizeUrl({ redirect_uri }))).toContain(redirect_uri);
  service.advance(7150);
  expect((await projects(access_token)).status).toBe(401);
});

test('codes and tokens never repeat after a restart', async () => {
  await start({ seed: 'same' });
  const code = await codeFor();
  const { access_token } = await tokensFor();
  await restart({ seed: 'same' });
  expect(await codeFor()).not.toBe(code);
  expect((await tokensFor()).access_token).not.toBe(access_token);
});

test('what expired or was revoked before stays so', async () => {
  await start();
  const [ada, ben] = [await tokensFor('1'), await tokensFor('2')];
  service.expireAccessTokens();
  service.revoke('2');
  await restart();
  expect((await projects(ada.access_token)).status).toBe(401);
  expect((await refresh(ada.refresh_token)).status).toBe(200);
  expect((await refresh(ben.refresh_token)).status).toBe(400);
});

const LIMIT = 100_000;

test('the newest hundred thousand codes are kept', async () => {
  const options = { keepRequests: 0, codeLifetime: 3600 };
  await start(options);
  const [first, second] = [await codeFor(), await codeFor()];
  await restart(options, ({ codes }) => {
    while (codes.length < LIMIT) codes.push([`code-${codes.length}`, codes[0]?.[1]]);
  });
  const newest = await codeFor();
  expect((await exchange(first)).status).toBe(400);
  expect((await exchange(second)).status).toBe(200);
  expect((await exchange(newest)).status).toBe(200);
});

test('the hundred thousand grants that were refreshed last are kept', async () => {
  await start({ keepRequests: 0 });
  const [idle, used] = [await tokensFor(), await tokensFor()];
  await restart({ keepRequests: 0 }, ({ grants: { grants, serials } }) => {
    while (grants.length < LIMIT) grants.push({ ...grants[0], id: grants.length + 1 });
    serials[0] = LIMIT;
  });
  const { refresh_token } = await body<Tokens>(await refresh(used.refresh_token));
  for (const _login of [1, 2]) await tokensFor();
  expect((await refresh(idle.refresh_token)).status).toBe(400);
  expect((await refresh(refresh_token)).status).toBe(200);
});

test('a change is saved while the service runs, in a file that its owner alone can read', async () => {
  await start();
  for (const name of ['Cleo', 'Dora']) {
    service.addUser({ id: '3', name });
    await expect.poll(() => readFileSync(state, 'utf8')).toContain(name);
  }
  expect(statSync(state).mode & 0o777).toBe(0o600);
  expect(existsSync(`${state}.tmp`)).toBe(false);
});

test('another secret of the application takes precedence over the saved one', async () => {
  const applications = [{ clientID: 'c', clientSecret: 'one', redirectUrls: ['http://localhost:1/'] }];
  await start({ applications });
  await restart({ applications: [{ ...applications[0], clientSecret: 'two', redirectUrls: ['http://localhost:2/'] }] });
  expect(service.applications).toMatchObject([
    { clientSecret: 'two', redirectUrls: ['http://localhost:2/', 'http://localhost:1/'] },
  ]);
});

test.each(['{"secrets":"hush', '[]', '{"version":2}', '{"version":1}'])(
  'the state file %j is refused without being quoted or overwritten',
  async (text) => {
    await start();
    writeFileSync(join(folder, 'bad.json'), text);
    const failure: Error = await startEmulator({ state: join(folder, 'bad.json') }).then(
      () => new Error('it started'),
      (error: Error) => error,
    );
    expect(failure).toMatchObject({ code: 'ERR_EMULATOR_OPTION', option: 'state' });
    expect(failure.message).not.toContain('hush');
    expect(readFileSync(join(folder, 'bad.json'), 'utf8')).toBe(text);
  },
);

test('a state file that cannot be written later is a warning, and the service continues', async () => {
  const doomed = mkdtempSync(join(tmpdir(), 'emulator-doomed-'));
  await start({ state: join(doomed, 'state.json') });
  rmSync(doomed, { recursive: true });
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  service.addUser({ id: '3', name: 'Cleo' });
  expect(await warned).toMatchObject({ name: 'EmulatorWarning', message: expect.stringContaining('cannot be used') });
  await tokensFor('3');
});

test('a state file that cannot be written is an error at the start', async () => {
  await start();
  await expect(startEmulator({ state: join(folder, 'missing', 'state.json') })).rejects.toThrow(
    /cannot be used: ENOENT/,
  );
});
