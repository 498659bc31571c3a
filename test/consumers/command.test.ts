import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/service-process.js';
import { type Packed, pack } from './packed.js';
import { createProject, type Outcome, type Project } from './project.js';
import { startApplication, startEmulatorCommand } from './stranger.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

const CLI = 'node_modules/passport-oauth-app/dist/cli.js';

async function newProject(...packages: readonly string[]): Promise<Project> {
  const project = await createProject(packed, ['express', 'express-session', 'passport', ...packages]);
  onTestFinished(() => project.remove());
  return project;
}

describe('passport-oauth-app init', () => {
  test.each([
    ['a package.json as npm init writes it', '{ "type": "commonjs" }'],
    ['ES modules', '{ "type": "module" }'],
  ])('writes an application and a test that work in a project with %s', async (_, manifest) => {
    const project = await newProject();
    await project.write({ 'package.json': manifest });
    expect(await project.node(CLI, 'init')).toMatchObject({ exitCode: 0, stderr: '' });
    const { stdout } = await project.node('--test');
    expect(stdout).toMatch(/^# pass 1$/m);

    const port = await freePort();
    const callbackURL = `http://localhost:${port}/callback`;
    const emulator = await startEmulatorCommand(project.folder, ['--port', '0', '--redirect-url', callbackURL]);
    onTestFinished(() => emulator.stop());
    const environment = { ...emulator.variables, CALLBACK_URL: callbackURL, PORT: String(port) };
    const application = await startApplication(project.folder, 'app.js', environment, port);
    onTestFinished(() => application.stop());
    expect(JSON.parse(await application.logIn('/projects'))).toHaveProperty('data');
    expect(application.stderr()).toBe('');
  });

  test('writes what the emulator uses by default into .env, which doctor reads', async () => {
    const project = await newProject();
    await project.node(CLI, 'init');
    const emulator = await startEmulatorCommand(project.folder, ['--port', '0']);
    onTestFinished(() => emulator.stop());
    const { CLIENT_ID, CLIENT_SECRET, AUTH_URL = '' } = emulator.variables;
    const written = readFileSync(join(project.folder, '.env'), 'utf8');
    for (const line of [`CLIENT_ID=${CLIENT_ID}`, `CLIENT_SECRET=${CLIENT_SECRET}`]) expect(written).toContain(line);
    expect(written).toContain(`AUTH_URL=${AUTH_URL.replace(/\d+$/, '4000')}\n`);

    await project.write({ '.env': written.replaceAll(/=http.*:4000$/gm, `=${AUTH_URL}`) });
    // Vitest sets BASE_URL, and a set variable wins.
    const doctor = (...more: string[]) => project.node(CLI, 'doctor', '--base-url', AUTH_URL, ...more);
    expect(await doctor()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await doctor('--client-secret', 'wrong')).toMatchObject({ exitCode: 1 });
    rmSync(join(project.folder, '.env'));
    mkdirSync(join(project.folder, '.env'));
    expect(await doctor()).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/^\.env: .*\n$/) });
  });

  test('writes TypeScript that compiles', async () => {
    const project = await newProject('@types/node', '@types/express', '@types/express-session', '@types/passport');
    await project.write({ 'package.json': '{ "type": "commonjs" }' });
    await project.node(CLI, 'init', '--typescript');
    const options = { module: 'nodenext', types: ['node'], skipLibCheck: true, verbatimModuleSyntax: true };
    const { stdout } = await project.tsc(options);
    expect(stdout).toBe('');
  });

  test('overwrites no file', async () => {
    const project = await newProject();
    await project.node(CLI, 'init');
    for (const file of ['app.js', '.env', 'app.test.js']) appendFileSync(join(project.folder, file), '# mine');
    const { stdout } = await project.node(CLI, 'init');
    for (const file of ['app.js', '.env', 'app.test.js']) {
      expect(stdout).toMatch(new RegExp(`^kept +${file}$`, 'm'));
      expect(readFileSync(join(project.folder, file), 'utf8')).toMatch(/# mine$/);
    }
  });
});

describe('passport-oauth-app doctor', () => {
  const callback = 'http://localhost:3000/callback';
  let project: Project;
  beforeAll(async () => {
    project = await createProject(packed, []);
  });
  afterAll(() => project?.remove());

  function doctor(url: string, secret: string, ...more: readonly string[]): Promise<Outcome> {
    const client = ['--client-id', 'sample-client-id', '--client-secret', secret, '--callback-url', callback];
    return project.node(CLI, 'doctor', '--auth-url', url, '--base-url', url, ...client, ...more);
  }

  test.each([
    ['crowdin', []],
    ['form', ["tokenRequest: 'form',"]],
    ['basic', ["tokenRequest: 'form',", "clientAuthentication: 'basic',"]],
  ] as const)('prints the options of a service that speaks as %s, and no secret', async (profile, lines) => {
    const service = await startEmulator({ profile });
    onTestFinished(() => service.close());
    const { clientSecret } = service.options;
    const { exitCode, stdout, stderr } = await doctor(service.authUrl, clientSecret);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout.match(/(?:tokenRequest|clientAuthentication):.*/g) ?? []).toEqual(lines);
    expect(stdout).not.toContain(clientSecret);
  });

  test('fails for a wrong secret, and for a callback URL that is not registered', async () => {
    const service = await startEmulator();
    onTestFinished(() => service.close());
    const other = ['--callback-url', 'http://localhost:1/x'];
    const { exitCode, stdout } = await doctor(service.authUrl, 'wrong-secret', ...other);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^fail +token endpoint: .*refuses the client/m);
    expect(stdout).toMatch(/^fail +authorization endpoint: .*Register CALLBACK_URL/m);
    expect(stdout).not.toContain('wrong-secret');
  });

  test.for<[flag: string, value: string, message: string]>([
    ['base-url', 'http://localhost:1/api/v2', 'baseUrl: expected the address without /api/v2'],
    ['auth-url', 'http://localhost:1/oauth/authorize', 'authUrl: expected the address without /oauth/authorize'],
    ['callback-url', 'http://localhost:1/callback#x', 'callbackURL: '],
  ])('refuses a --%s that the strategy refuses', async ([flag, value, message]) => {
    const { exitCode, stderr } = await doctor('http://localhost:1', 'secret', `--${flag}`, value);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('names all settings that are missing at once', async () => {
    const { exitCode, stderr } = await project.node(CLI, 'doctor', '--base-url', 'http://localhost:1');
    expect(exitCode).toBe(2);
    for (const name of ['AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET', 'CALLBACK_URL']) expect(stderr).toContain(name);
  });

  test('reads metadata, and sends the secret to no other origin that it names', async () => {
    const received: string[] = [];
    const other = createServer((req, res) => {
      received.push(`${req.url}`);
      res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
    }).listen(0, '127.0.0.1');
    const bodies: string[] = [];
    const server = createServer((req, res) => {
      const { port } = other.address() as AddressInfo;
      const origin = `http://${req.headers.host}`;
      if (req.url === '/.well-known/oauth-authorization-server') {
        const document = {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `http://127.0.0.1:${port}/token`,
          code_challenge_methods_supported: ['S256'],
          authorization_response_iss_parameter_supported: true,
        };
        res.end(JSON.stringify(document));
        return;
      }
      req.on('data', (chunk) => bodies.push(String(chunk)));
      req.on('end', () => res.writeHead(req.method === 'POST' ? 404 : 200).end());
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void [other.close(), server.close()]);
    await Promise.all([once(other, 'listening'), once(server, 'listening')]);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { exitCode, stdout } = await doctor(url, 'the-client-secret');
    expect(exitCode).toBe(1);
    for (const line of ["authorizationPath: '/authorize',", `issuer: '${url}',`, 'pkce: true,', '--token-path'])
      expect(stdout).toContain(line);
    expect(received).toEqual([]);
    expect(bodies.join()).toContain('the-client-secret');

    // A server that never refuses a client does not say whether the secret is right.
    const { port } = other.address() as AddressInfo;
    const unchecked = await doctor(url, 'the-client-secret', '--token-path', `http://127.0.0.1:${port}/token`);
    expect([unchecked.exitCode, unchecked.stdout]).toEqual([1, expect.stringMatching(/^fail +token .*made-up/m)]);
  });
});
