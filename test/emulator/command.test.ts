import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Program, startProgram } from '../support/program.js';
import { threats } from '../support/threats.js';
import { type BuiltCommand, buildCommand } from './built-command.js';

let command: BuiltCommand;
let folder: string;

beforeAll(() => {
  command = buildCommand();
  folder = command.folder;
});
afterAll(() => command.remove());

function run(...args: readonly string[]): Program {
  const env = { ...process.env, NODE_ENV: 'development', NODE_OPTIONS: '--max-old-space-size=60' };
  const program = startProgram(process.execPath, [command.path, ...args], { env });
  onTestFinished(() => void program.child.kill('SIGKILL'));
  return program;
}

describe('passport-oauth-app emulator', () => {
  test('prints what to paste, logs each request without secrets, and Ctrl-C stops it cleanly', async () => {
    const { child, says, ended } = run(
      ...['emulator', '--port', '0', '--client-id', 'my-id', '--client-secret', "it's", '--redirect-url'],
      ...['http://localhost:1/a', '--redirect-url', 'http://localhost:1/b'],
    );
    const text = await says(/Ctrl-C stops it/);
    const origin = /authUrl: '(http:\/\/127\.0\.0\.1:\d+)'/.exec(text)?.[1] ?? '';
    for (const line of [
      ...[`baseUrl: '${origin}'`, "clientID: 'my-id'", "clientSecret: 'it\\'s'", 'Ben Okafor, organization acme'],
      ...["callbackURL: 'http://localhost:1/a'", 'http://localhost:1/b'],
    ])
      expect(text).toContain(line);
    await fetch(`${origin}/api/v2/projects?secret=query`, { headers: { authorization: 'Bearer secret-token' } });
    const logged = await says(/GET \/api\/v2\/projects 401 \d+ ms/);
    expect(logged).not.toMatch(/secret=query|secret-token/);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('SIGTERM ends it too, with connections open', async () => {
    const { child, says, ended } = run('emulator', '--port', '0', '--quiet');
    const origin = /listens on (\S+),/.exec(await says(/Ctrl-C/))?.[1] ?? '';
    await fetch(origin);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stdout: expect.not.stringContaining(' 404') });
  });

  test('--help tells all options', async () => {
    for (const args of [['--help'], ['emulator', '-h']]) {
      const { code, stdout } = await run(...args).ended;
      expect(code).toBe(0);
      const options = ['--port', '--client-id', '--client-secret', '--redirect-url', '--token-lifetime', '--config'];
      for (const option of options) expect(stdout).toContain(option);
    }
  });

  test('a config file gives any option, and the command line goes before it', async () => {
    const config = join(folder, 'emulator.json');
    const applications = [{ clientID: 'from-file', clientSecret: 's', redirectUrls: ['http://localhost:2/x'] }];
    writeFileSync(config, JSON.stringify({ port: 0, applications, users: [{ id: 'z', name: 'Zoe' }] }));
    const text = await run('emulator', '--config', config, '--redirect-url', 'http://localhost:2/y').says(/Ctrl-C/);
    for (const expected of ["clientID: 'from-file'", "callbackURL: 'http://localhost:2/y'", 'z  Zoe'])
      expect(text).toContain(expected);
    expect(text).not.toContain('localhost:2/x');
  });

  test('the settings that it prints are a file that node --env-file reads', async () => {
    const config = join(folder, 'quotes.json');
    const clientSecret = `it's a #1 "secret" \\`;
    const applications = [{ clientID: 'client', clientSecret, redirectUrls: ['http://localhost:2/x'] }];
    writeFileSync(config, JSON.stringify({ port: 0, applications }));
    const text = await run('emulator', '--config', config).says(/Ctrl-C/);
    const settings = join(folder, '.env');
    writeFileSync(settings, text.match(/^[A-Z_]+=.*$/gm)?.join('\n') ?? '');
    const script = 'process.stdout.write([process.env.CLIENT_SECRET, process.env.ENTERPRISE_BASE_URL].join(" "))';
    const { stdout } = await promisify(execFile)(process.execPath, [`--env-file=${settings}`, '-e', script]);
    expect(stdout).toMatch(/^it's a #1 "secret" \\ http:\/\/\{domain\}\.api\.localhost:\d+$/);
  });

  test('a config file may be a module, which can hold routes', async () => {
    const config = join(folder, 'emulator.config.js');
    writeFileSync(config, "export default { port: 0, routes: [{ method: 'GET', path: '/x', handler: () => 1 }] };");
    await run('emulator', '--config', config).says(/listens on/);
  });

  test('--version prints the version of the package', async () => {
    expect(await run('--version').ended).toMatchObject({ code: 0, stdout: '1.2.3\n', stderr: '' });
  });

  test('a JSON config with a byte order mark is read', async () => {
    const config = join(folder, 'bom.json');
    writeFileSync(config, `\ufeff${JSON.stringify({ port: 0, users: [{ id: 'z', name: 'Zoe' }] })}`);
    await run('emulator', '--config', config).says(/z {2}Zoe/);
  });

  test('bodies that are large objects do not end it, and are all shown', threats(82), async () => {
    const text = await run('emulator', '--port', '0', '--quiet').says(/Ctrl-C/);
    const origin = /listens on (\S+),/.exec(text)?.[1] ?? '';
    const headers = { 'content-type': 'application/json' };
    const body = `[${'[],'.repeat(300_000)}[]]`;
    for (let count = 0; count < 6; count++) {
      expect((await fetch(`${origin}/api/v2/projects`, { method: 'POST', headers, body })).status).toBe(401);
    }
    const requests = await (await fetch(`${origin}/_emulator/requests`)).text();
    expect(requests.length).toBeGreaterThan(6 * body.length);
    expect((await fetch(origin)).status).toBe(200);
  });

  test('--allow-remote is printed, and opens other hosts', async () => {
    const text = await run('emulator', '--port', '0', '--allow-remote', '--host', '0.0.0.0', '--quiet').says(/Ctrl-C/);
    expect(text).toContain('reachable from other computers');
    expect(text).toMatch(/authUrl: 'http:\/\/127\.0\.0\.1:\d+'/);
  });

  test('--latency, --profile, --domain-hosts and --body-limit set the options of these names', async () => {
    const flags = ['--latency', '1-5', '--profile', 'form', '--domain-hosts', 'path', '--body-limit', '10'];
    const text = await run('emulator', '--port', '0', ...flags, '--quiet').says(/Ctrl-C/);
    expect(text).toContain("tokenRequest: 'form'");
    expect(text).toMatch(/enterpriseBaseUrl: 'http:\/\/127\.0\.0\.1:\d+\/organizations\/\{domain\}'/);
    const origin = /listens on (\S+),/.exec(text)?.[1] ?? '';
    expect((await fetch(`${origin}/oauth/token`, { method: 'POST', body: 'a'.repeat(11) })).status).toBe(413);
  });

  test('a taken port is an error that says what to do', async () => {
    const port = /127\.0\.0\.1:(\d+)/.exec(await run('emulator', '--port', '0').says(/Ctrl-C/))?.[1] ?? '';
    expect(await run('emulator', '--port', port).ended).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `Port ${port} is in use. Stop the other program, or choose another port (0 picks a free one).\n`,
    });
  });

  test.each<[readonly string[], number, string]>([
    [['emulator', '--prot', '1'], 2, "Unknown option '--prot'\nSee passport-oauth-app emulator --help.\n"],
    [['emulator', '--port'], 2, "Option '--port <value>' argument missing\nSee passport-oauth-app emulator --help.\n"],
    [['emulator', '--port', 'http'], 1, "--port must be a whole number from 0 to 65535, but it is 'http'.\n"],
    [
      ['emulator', '--host', '0.0.0.0'],
      1,
      "--host must be a loopback host: '127.0.0.1', '::1' or 'localhost' (or any host with --allow-remote), but it is '0.0.0.0'.\n",
    ],
    [['emulator', '--token-lifetime', '-1'], 2, "Option '--token-lifetime' argument is ambiguous"],
    [['emulator', '--redirect-url', 'x'], 1, '--redirect-url must be an absolute URL'],
    [['emulator', '--latency', '5-1'], 1, '--latency must be a range'],
    [['emulator', '--profile', 'x'], 1, "--profile must be one of 'crowdin'"],
    [['emulator', 'more'], 2, 'Usage: passport-oauth-app emulator'],
    [[], 2, 'Usage: passport-oauth-app emulator'],
    [['emulator', '--config', '/nowhere.json'], 1, 'The config file /nowhere.json cannot be used: ENOENT'],
    [['emulator', '--config', '/nowhere.mjs'], 1, 'The config file /nowhere.mjs cannot be used: Cannot find module'],
  ])('%j is refused', async (args, code, message) => {
    const ended = await run(...args).ended;
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain('    at ');
  });

  test.each(['{"clientSecret": "hush', '[]', '7', '{"nonsense":1}'])(
    'the config file %j is refused without quoting it',
    async (text) => {
      const config = join(folder, 'bad.json');
      writeFileSync(config, text);
      const { code, stderr } = await run('emulator', '--config', config).ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(/cannot be used|unknown key "nonsense"/);
      expect(stderr).not.toContain('hush');
    },
  );
});
