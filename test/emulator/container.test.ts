import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { startProgram } from '../support/program.js';

const run = promisify(execFile);
const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');

function instruction(name: string): string[] {
  const [, list = '[]'] = new RegExp(`^${name}\\b[^[\\n]*(\\[.*\\])$`, 'm').exec(dockerfile) ?? [];
  return JSON.parse(list);
}

describe('the compose file', () => {
  const compose = readFileSync(new URL('../../docs/emulator-compose.yaml', import.meta.url), 'utf8');
  const [, application = ''] = compose.split('  application:\n');

  test('has an application that starts, and logs in at the emulator beside it', async () => {
    const service = await startEmulator();
    const [, node = '', script = ''] = /command: \["(\w+)", "([^"]+)"\]/.exec(application) ?? [];
    expect(node).toBe('node');
    // The stage of the image that has the repository, with its packages and its build.
    const [, target = ''] = /target: (\w+)/.exec(application) ?? [];
    expect(dockerfile).toMatch(new RegExp(`^FROM \\S+ AS ${target}$`, 'm'));
    const given = [...application.matchAll(/^ {6}([A-Z_]+): (\S+)$/gm)].map(([, name, value = '']) => [
      name,
      value.replace('localhost:4000', new URL(service.authUrl).host),
    ]);
    const env = { PATH: process.env.PATH, PORT: '0', ...Object.fromEntries(given) };
    const file = fileURLToPath(new URL(`../../${script}`, import.meta.url));
    const { child, ended, says } = startProgram(process.execPath, [file], { env });
    const [, url = ''] = /Open (http\S+)$/m.exec(await says(/Open http\S+$/)) ?? [];
    const login = await fetch(`${url}/login`, { redirect: 'manual' });
    expect(login.headers.get('location')).toMatch(
      new RegExp(`^${service.authUrl}/oauth/authorize\\?client_id=sample-client-id&`),
    );
    child.kill('SIGTERM');
    await ended;
    await service.close();
  });
});

describe('the Dockerfile', () => {
  test('starts the command of the package, open to other hosts', () => {
    const [node, script, ...args] = instruction('ENTRYPOINT');
    expect(node).toBe('node');
    expect(`./${script}`).toBe(manifest.bin['passport-oauth-app']);
    expect(args).toEqual(['emulator', '--host', '0.0.0.0', '--allow-remote', '--port', '4000']);
  });

  test('does not run as root, and does not set NODE_ENV to production', () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).not.toContain('NODE_ENV');
  });

  test('its health check succeeds while the emulator runs, and fails afterwards', async () => {
    const service = await startEmulator();
    const [, ...args] = instruction('HEALTHCHECK').map((arg) => arg.replace('http://127.0.0.1:4000', service.authUrl));
    await run(process.execPath, args);
    await service.close();
    await expect(run(process.execPath, args)).rejects.toMatchObject({ code: 1 });
  });
});
