import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { realService, serverSettings } from '../../example-app/src/server.js';
import { Browser } from '../support/browser.js';
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
beforeAll(async () => {
  const compiler = spawn(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'example-app'], {
    cwd: root,
    stdio: 'inherit',
  });
  await once(compiler, 'exit');
});

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { PATH = '' } = process.env;
  return spawn(process.execPath, args, { env: { PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = start([script('main'), ...args], env);
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { out, err, code };
}

/** Starts the application, and resolves when it has printed its address. @returns `exit`: its code and signal */
async function started(env: Readonly<Record<string, string>>, name = 'main') {
  const child = start([script(name)], env);
  const exit = once(child, 'exit');
  // A test that fails would leave it running.
  onTestFinished(() => void child.kill('SIGTERM'));
  const errors = text(child.stderr);
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = /Open (http\S+)$/.exec(line) ?? [];
    if (url !== undefined) return { child, url, errors, exit };
  }
  throw new Error(`it has ended at once: ${await errors}`);
}

describe('npm start', () => {
  it('with --tour walks through everything and prints no secret', async () => {
    const { out, err, code } = await run(['--tour']);
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toContain('All 17 steps did what they should.');
    expect(out).toContain('error=access_denied');
    expect(out).toContain('http://acme.api.localhost');
    expect(out).toContain('service: and 17 more requests like the last one');
    // No token, code, state or secret of the service is shorter than this, and no other word is as long.
    expect(out.match(/[\w-]{32,}/g)).toBeNull();
  });

  it('with --help says how it is used', async () => {
    const { out, code } = await run(['--help']);
    expect(code).toBe(0);
    expect(out).toContain('--tour');
  });

  it('refuses an option that it does not know', async () => {
    const { err, code } = await run(['--turo']);
    expect(code).toBe(2);
    expect(err).toContain('Unknown option: --turo');
  });

  it('prints one address, answers there, and ends when it is asked to', async () => {
    const { child, url, exit } = await started({ PORT: '0' });
    expect((await fetch(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });

  it('says that the port is taken, if it was asked for that one', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { err, code } = await run([], { PORT: String(port) });
    other.close();
    expect(code).toBe(1);
    expect(err).toBe(`Port ${port} is taken. End what listens there, or set PORT to another one.\n`);
  });

  it('runs against a real service that the environment names', async () => {
    const { child, url, exit } = await started({ ...real, CALLBACK_URL: 'http://localhost:3000/callback', PORT: '0' });
    const answer = await fetch(`${url}/login`, { redirect: 'manual' });
    const location = new URL(answer.headers.get('location') ?? '');
    expect(location.origin).toBe(real.AUTH_URL);
    expect(location.searchParams.get('redirect_uri')).toBe('http://localhost:3000/callback');
    expect(await (await fetch(url)).text()).not.toMatch(/\/incidents\/|The first minute/);
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });

  it('names what is missing of a real service', async () => {
    const { err, code } = await run([], { AUTH_URL: real.AUTH_URL, CLIENT_ID: real.CLIENT_ID });
    expect(code).toBe(1);
    expect(err).toContain('missing: BASE_URL, CLIENT_SECRET, CALLBACK_URL, SCOPE, SESSION_SECRET');
  });

  it('says what is wrong with an address, and no stack', async () => {
    const { err, code } = await run([], { ...real, AUTH_URL: 'http://accounts.example.com' });
    expect(code).toBe(1);
    expect(err).toContain('authUrl');
    expect(err).not.toMatch(/\n\s+at /);
  });
});

describe.skipIf(!hasRedis())('npm run start:cluster', () => {
  it('answers from two processes, which refresh a token once between them', async () => {
    const { child, url, exit } = await started({ PORT: '0' }, 'cluster');
    const browser = new Browser();
    const { headers } = await browser.visit(`${url}/login`);
    await browser.settle(await browser.visit(await approved(headers.get('location') ?? '')));
    await browser.visit(`${url}/incidents/burst`, { method: 'POST' });
    // The process that answers may hear a moment later what happened in the other one, and begin its calls later.
    const home = async () => (await browser.visit(`${url}/`)).text;
    await expect.poll(home).toMatch(/waited, 1 refresh, 12 × 200, 0 lost logins, 2 processes/);

    const cookie = browser.cookieHeader(url);
    const panel = await fetch(`${url}/panel/events`, { headers: { cookie } });
    let heard = '';
    for await (const part of panel.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      heard += part;
      // A second signal would end it at once.
      if (!child.killed && heard.includes('Token refreshed')) child.kill('SIGINT');
    }
    expect(await exit).toEqual([0, null]);
  });

  it.skipIf(process.platform !== 'linux')(
    'ends in good order where a worker has closed its channel and is told to end',
    async () => {
      const preloaded = new URL('closed-channel.mjs', import.meta.url).href;
      const { child, errors, exit } = await started({ PORT: '0', NODE_OPTIONS: `--import=${preloaded}` }, 'cluster');
      child.kill('SIGINT');
      expect(await exit).toEqual([0, null]);
      expect(await errors).toBe('');
    },
  );

  it('says what to install where there is no Redis', async () => {
    const child = start([script('cluster')], { PORT: '0', PATH: '/nowhere' });
    const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect(code).toBe(1);
    expect(err).toContain('redis-server is not installed');
  });
});

/** Approves an authorization request at a service that runs elsewhere. @returns The callback. */
async function approved(authorize: string): Promise<string> {
  const { origin, pathname, search } = new URL(authorize);
  const body = new URLSearchParams(search);
  body.set('user', '2');
  body.set('decision', 'approve');
  const answer = await fetch(origin + pathname, { method: 'POST', body, redirect: 'manual' });
  return answer.headers.get('location') ?? '';
}

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
