import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const run = promisify(execFile);
const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');

function instruction(name: string): string[] {
  const [, list = '[]'] = new RegExp(`^${name}\\b[^[\\n]*(\\[.*\\])$`, 'm').exec(dockerfile) ?? [];
  return JSON.parse(list);
}

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
