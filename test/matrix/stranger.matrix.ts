import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Reader } from '../consumers/reader.js';
import { startApplication, startEmulatorCommand } from '../consumers/stranger.js';
import { walk } from '../consumers/tutorial.js';
import { freePort } from '../support/service-process.js';
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
  it('does its two steps in an empty folder, and sees the projects', async () => {
    const folder = await installation.emptyFolder();
    const steps = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const [, commands = ''] = /^1\. In an empty folder: `([^`]+)`/m.exec(steps) ?? [];
    const complaints: string[] = [];
    for (const command of commands.split(' && ')) {
      const [program = '', ...words] = command.split(' ');
      const isPackage = (word: string) => program === 'npm' && word === 'passport-oauth-app';
      const args = words.map((word) => (isPackage(word) ? installation.packed.tarball : word));
      complaints.push(...warningsIn((await run(program, args, { cwd: folder })).stderr));
    }
    expect(complaints).toEqual([]);

    const [port, servicePort] = [await portLike(3000), await portLike(4000)];
    const callbackURL = `http://localhost:${port}/callback`;
    const flags = [
      ...(servicePort === 4000 ? [] : ['--port', String(servicePort)]),
      ...(port === 3000 ? [] : ['--redirect-url', callbackURL]),
    ];
    const emulator = await startEmulatorCommand(folder, flags, ['npx', 'passport-oauth-app']);
    const variables = { ...emulator.variables, CALLBACK_URL: callbackURL, PORT: String(port) };
    const command = [process.execPath, '--env-file=.env', 'app.js'];
    const application = await startApplication(folder, command, variables, port);
    try {
      expect(JSON.parse(await application.logIn('/projects'))).toHaveProperty('data');
      expect(application.stderr()).toBe('');
      expect(warningsIn(emulator.stderr())).toEqual([]);
    } finally {
      await application.stop();
      await emulator.stop();
    }
  });
});

describe('a reader of docs/tutorial.md', () => {
  it('gets to the page with the projects and the logout button, and sees refreshes in the log of the service', async () => {
    const install = async (cwd: string, packages: readonly string[]) => {
      const named = packages.map((name) => (name === 'passport-oauth-app' ? installation.packed.tarball : name));
      await run('npm', ['install', ...named], { cwd });
    };
    const reader = await Reader.of('docs/tutorial.md', { folder: await installation.emptyFolder(), install });
    try {
      await walk(reader);
      await reader.follow('6. Watch a refresh');
      await reader.browser.decide(await reader.open('/projects'), 'approve');
      await expect
        .poll(
          async () => {
            expect((await reader.open('/projects')).text).toContain('My projects');
            return reader.printed('emulator').stdout.match(/POST \/oauth\/token/g)?.length;
          },
          { timeout: 110_000, interval: 500 },
        )
        .toBeGreaterThanOrEqual(3);
    } finally {
      await reader.close();
    }
  });
});

/** What npm and Node complain about, except about the settings of whoever runs the tests. */
function warningsIn(stderr: string): readonly string[] {
  return stderr
    .split('\n')
    .filter((line) => /warn|deprecat/i.test(line) && !/Unknown (?:user|env|project) config/.test(line));
}
