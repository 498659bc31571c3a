import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { FollowingBrowser } from '../support/following-browser.js';
import { startProgram } from '../support/program.js';

const file = (name: string) => fileURLToPath(new URL(`../../example-app/minimal/${name}`, import.meta.url));

let service: Emulator;

beforeEach(async () => {
  service = await startEmulator();
});
afterEach(() => service.close());

/** Starts it as a user does. @returns Its address. */
async function start(name: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { PATH = '' } = process.env;
  const { child, ended, says } = startProgram(process.execPath, [file(name)], { env: { PATH, PORT: '0', ...env } });
  onTestFinished(async () => {
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ stderr: '' });
  });
  return /Open (http\S+)$/m.exec(await says(/Open http\S+$/))?.[1] ?? '';
}

describe('the minimal example', () => {
  it('logs in, lists the projects with a fresh token, and logs out', async () => {
    const { authUrl, baseUrl, clientID, clientSecret } = service.options;
    const credentials = { CLIENT_ID: clientID, CLIENT_SECRET: clientSecret, SESSION_SECRET: 'secret of a test' };
    // Its own port is not known before; the callback comes to the registered address, and is sent on from there.
    const registered = 'http://localhost:3000/callback';
    const url = await start('server.js', {
      AUTH_URL: authUrl,
      BASE_URL: baseUrl,
      CALLBACK_URL: registered,
      ...credentials,
    });
    const browser = new FollowingBrowser();
    const login = await browser.settle(await browser.visit(`${url}/projects`));
    const callback = await service.approve(login.headers.get('location') ?? '');
    const page = await browser.settle(await browser.visit(callback.replace('http://localhost:3000', url)));
    expect(page.url).toBe(`${url}/projects`);
    expect(page.text).toContain('Pocket Garden');

    service.expireAccessTokens();
    expect((await browser.visit(`${url}/projects`)).text).toContain('Pocket Garden');
    await browser.visit(`${url}/logout`, { method: 'POST' });
    expect((await browser.visit(`${url}/projects`)).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
  });

  it('runs against the emulator that its second file starts', async () => {
    const url = await start('with-emulator.js');
    const { headers } = await new FollowingBrowser().visit(`${url}/login`);
    expect(headers.get('location')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/oauth\/authorize\?/);
  });

  it('is short enough to be copied, and takes the package by its public entry points', () => {
    const lines = readFileSync(file('server.js'), 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(45);
    for (const name of ['server.js', 'with-emulator.js']) {
      expect(readFileSync(file(name), 'utf8')).not.toMatch(/from '\.\.|dist\/|src\//);
    }
  });
});
