import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { snippetsOf } from '../consumers/snippets.js';
import { freePort, startApplication, startEmulatorCommand } from '../consumers/stranger.js';
import { type Installation, install } from './installation.js';

const run = promisify(execFile);

let installation: Installation;
beforeAll(async () => {
  installation = await install();
});
afterAll(() => installation?.remove());

/** The port that the document names if it is free here, else another one. */
async function portLike(port: number): Promise<number> {
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
  return isTaken ? freePort() : port;
}

describe('a stranger with nothing but README.md', () => {
  it('installs, pastes the first snippet, starts the emulator, sets what it prints, and logs in', async () => {
    const folder = await installation.emptyFolder();
    const [shell, snippet] = snippetsOf('README.md');
    const install = (shell?.text ?? '').trim().split(' ').slice(1);
    const packages = install.map((word) => (word === 'passport-oauth-app' ? installation.packed.tarball : word));
    const { stderr } = await run('npm', packages, { cwd: folder });
    expect(warningsIn(stderr)).toEqual([]);
    expect(await readFile(join(folder, 'package.json'), 'utf8')).toContain('passport-oauth-app');

    const [port, servicePort] = [await portLike(3000), await portLike(4000)];
    await writeFile(join(folder, 'app.mjs'), snippet?.text.replaceAll('3000', String(port)) ?? '');
    const flags = [
      ...(servicePort === 4000 ? [] : ['--port', String(servicePort)]),
      ...(port === 3000 ? [] : ['--redirect-url', `http://localhost:${port}/callback`]),
    ];
    const emulator = await startEmulatorCommand(folder, flags, ['npx', 'passport-oauth-app']);
    const application = await startApplication(folder, 'app.mjs', emulator.variables, port);
    try {
      expect(JSON.parse(await application.logIn())).toHaveProperty('data');
      expect(application.stderr()).toBe('');
      expect(warningsIn(emulator.stderr())).toEqual([]);
    } finally {
      await application.stop();
      await emulator.stop();
    }
  });
});

/** What npm and Node complain about, except about the settings of whoever runs the tests. */
function warningsIn(stderr: string): readonly string[] {
  return stderr
    .split('\n')
    .filter((line) => /warn|deprecat/i.test(line) && !/Unknown (?:user|env|project) config/.test(line));
}
