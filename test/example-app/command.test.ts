import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { realService, serverSettings } from '../../example-app/src/server.js';
import { FollowingBrowser } from '../support/following-browser.js';
import { startProgram } from '../support/program.js';
import { hasRedis } from '../support/redis-server.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const script = (name: string) => fileURLToPath(new URL(`../../example-app/dist/${name}.js`, import.meta.url));

const real = {
  AUTH_URL: 'https://accounts.example.com',
  BASE_URL: 'https://api.example.com',
  CLIENT_ID: 'an-id',
  CLIENT_SECRET: 'a-secret',
  CALLBACK_URL: 'https://app.example.net/callback',
  SCOPE: 'project tm',
  SESSION_SECRET: 'session secret',
};

// What tests of the command run is what was built; vitest itself needs no build of the example.
beforeAll(() => {
  const compiler = ['node_modules/typescript/bin/tsc', '-p', 'example-app'];
  execFileSync(process.execPath, compiler, { cwd: root, stdio: 'inherit' });
});

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}, name = 'main') {
  const { PATH = '' } = process.env;
  const program = startProgram(process.execPath, [script(name), ...args], { env: { PATH, ...env } });
  // A test that fails would leave it running.
  onTestFinished(() => void program.child.kill('SIGTERM'));
  return program;
}

/** Starts the application, and resolves when it has printed its address. */
async function started(env: Readonly<Record<string, string>>, name?: string) {
  const program = start([], env, name);
  const [, url = ''] = /Open (http\S+)$/m.exec(await program.says(/Open http\S+$/)) ?? [];
  return { ...program, url };
}

describe('npm start', () => {
  it('with --tour walks through everything and prints no secret', async () => {
    const { stdout: out, stderr, code } = await start(['--tour']).ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(out).toContain('All 17 steps did what they should.');
    expect(out).toContain('error=access_denied');
    expect(out).toContain('http://acme.api.localhost');
    expect(out).toContain('service: and 17 more requests like the last one');
    // No token, code, state or secret of the service is shorter than this, and no other word is as long.
    expect(out.match(/[\w-]{32,}/g)).toBeNull();
  });

  it('with --help says how it is used', async () => {
    const { stdout, code } = await start(['--help']).ended;
    expect(code).toBe(0);
    expect(stdout).toContain('--tour');
  });

  it('refuses an option that it does not know', async () => {
    const { stderr, code } = await start(['--turo']).ended;
    expect(code).toBe(2);
    expect(stderr).toContain('Unknown option: --turo');
  });

  it('prints one address, answers there, and ends when it is asked to', async () => {
    const { child, url, ended } = await started({ PORT: '0' });
    expect((await fetch(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  it('says that the port is taken, if it was asked for that one', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { stderr, code } = await start([], { PORT: String(port) }).ended;
    other.close();
    expect(code).toBe(1);
    expect(stderr).toBe(`Port ${port} is taken. End what listens there, or set PORT to another one.\n`);
  });

  it('runs against a real service that the environment names', async () => {
    const { child, url, ended } = await started({ ...real, CALLBACK_URL: 'http://localhost:3000/callback', PORT: '0' });
    const answer = await fetch(`${url}/login`, { redirect: 'manual' });
    const location = new URL(answer.headers.get('location') ?? '');
    expect(location.origin).toBe(real.AUTH_URL);
    expect(location.searchParams.get('redirect_uri')).toBe('http://localhost:3000/callback');
    expect(await (await fetch(url)).text()).not.toMatch(/\/incidents\/|The first minute/);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  it('names what is missing of a real service', async () => {
    const { stderr, code } = await start([], { AUTH_URL: real.AUTH_URL, CLIENT_ID: real.CLIENT_ID }).ended;
    expect(code).toBe(1);
    expect(stderr).toContain('missing: BASE_URL, CLIENT_SECRET, CALLBACK_URL, SCOPE, SESSION_SECRET');
  });

  it('says what is wrong with an address, and no stack', async () => {
    const { stderr, code } = await start([], { ...real, AUTH_URL: 'http://accounts.example.com' }).ended;
    expect(code).toBe(1);
    expect(stderr).toContain('authUrl');
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe.skipIf(!hasRedis())('npm run start:cluster', () => {
  it('answers from two processes, which refresh a token once between them', async () => {
    const { child, url, ended } = await started({ PORT: '0' }, 'cluster');
    const browser = new FollowingBrowser();
    await browser.decide(await browser.visit(`${url}/login`), 'approve', '2');
    await browser.visit(`${url}/incidents/burst`, { method: 'POST' });
    // The process that answers may hear a moment later what happened in the other one, and begin its calls later.
    const home = async () => (await browser.visit(`${url}/`)).text;
    await expect.poll(home).toMatch(/waited, 2 processes, 1 refresh, 12 × 200, 0 lost logins/);
    const job = await browser.visit(`${url}/grants/job`, { method: 'POST' });
    expect(job.text).toContain('Its job found 3 projects');

    const cookie = browser.cookieHeader(url);
    const panel = await fetch(`${url}/panel/events`, { headers: { cookie } });
    let heard = '';
    for await (const part of panel.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      heard += part;
      // A second signal would end it at once.
      if (!child.killed && heard.includes('Token refreshed')) child.kill('SIGINT');
    }
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  it.skipIf(process.platform !== 'linux')(
    'ends in good order where a worker has closed its channel and is told to end',
    async () => {
      const preloaded = new URL('closed-channel.mjs', import.meta.url).href;
      const { child, ended } = await started({ PORT: '0', NODE_OPTIONS: `--import=${preloaded}` }, 'cluster');
      child.kill('SIGINT');
      expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    },
  );

  it('says what to install where there is no Redis', async () => {
    const { stderr, code } = await start([], { PORT: '0', PATH: '/nowhere' }, 'cluster').ended;
    expect(code).toBe(1);
    expect(stderr).toContain('redis-server is not installed');
  });
});

describe('the settings', () => {
  it('want the emulated service where the environment names none', () => {
    expect(realService({ PORT: '80', SESSION_SECRET: 'x' })).toBeUndefined();
  });

  it('hold everything that the strategy needs', () => {
    const service = realService({ ...real, ENTERPRISE_BASE_URL: 'https://{domain}.api.example.com', PKCE: '1' });
    expect(service).toEqual({
      authUrl: real.AUTH_URL,
      baseUrl: real.BASE_URL,
      enterpriseBaseUrl: 'https://{domain}.api.example.com',
      clientID: real.CLIENT_ID,
      clientSecret: real.CLIENT_SECRET,
      callbackURL: real.CALLBACK_URL,
      scope: real.SCOPE,
      pkce: true,
    });
  });

  it('refuse what is no port', () => {
    for (const PORT of ['http', '-1', '70000']) expect(() => serverSettings({ PORT })).toThrow(/PORT/);
  });
});
