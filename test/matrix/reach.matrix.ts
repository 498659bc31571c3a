import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, EXPRESS_5 } from '../consumers/compilation.js';
import { type Snippet, snippetsOf } from '../consumers/snippets.js';
import {
  type RunningEmulator,
  readmeApplication,
  startApplication,
  startEmulatorCommand,
} from '../consumers/stranger.js';
import { freePort } from '../support/service-process.js';
import { type Installation, install } from './installation.js';
import { Lambda } from './lambda.js';

const run = promisify(execFile);

let installation: Installation;
let emulator: RunningEmulator;
let port: number;
beforeAll(async () => {
  installation = await install(['reach']);
  await writeFile(join(installation.reach, 'package.json'), '{ "private": true, "type": "module" }');
  port = await freePort();
  const urls = [`http://localhost:${port}/callback`, 'https://app.example.net/callback'];
  const flags = ['--port', '0', ...urls.flatMap((url) => ['--redirect-url', url])];
  emulator = await startEmulatorCommand(installation.reach, flags);
});
afterAll(async () => {
  await emulator?.stop();
  await installation?.remove();
});

/** Saves an example of docs/frameworks.md, with the port of this run. */
async function save(file: string, folder = installation.reach): Promise<Snippet> {
  const snippet = snippetsOf('docs/frameworks.md').find((one) => one.file === file);
  if (snippet === undefined) throw new Error(`docs/frameworks.md has no example ${file}`);
  // A test starts an emulator of its own, which knows the port of the document.
  const text = file.endsWith('.test.js') ? snippet.text : snippet.text.replaceAll('3000', String(port));
  await writeFile(join(folder, file), text);
  return snippet;
}

/** Saves the application of README.md. */
async function saveApplication(folder = installation.reach): Promise<void> {
  await writeFile(join(folder, 'app.js'), readmeApplication(port));
}

/** Logs in to an application that a command starts, and expects the projects. */
async function expectProjects(command: string | readonly string[], folder = installation.reach): Promise<void> {
  const application = await startApplication(folder, command, emulator.variables, port);
  try {
    expect(JSON.parse(await application.logIn('/projects'))).toHaveProperty('data');
  } finally {
    await application.stop();
  }
}

/** Settings of a compiler from before ES modules. */
const COMMONJS = {
  ...{ target: 'es2022', module: 'commonjs', moduleResolution: 'node10' },
  ...{ strict: true, esModuleInterop: true },
};

/** Runs a command that is installed beside the examples. */
function tool(name: string, ...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return run(join(installation.reach, 'node_modules/.bin', name), args, { cwd: installation.reach });
}

function program(name: string): string {
  return join(installation.reach, 'node_modules', name);
}

/** Writes package.json and the application of README.md into a new folder. */
async function project(devDependencies: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await installation.emptyFolder();
  const dependencies = {
    express: '^5',
    'express-session': '^1',
    passport: '^0.7',
    'passport-oauth-app': `file:${installation.packed.tarball}`,
  };
  const manifest = { private: true, type: 'module', dependencies, devDependencies };
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  await saveApplication(folder);
  return folder;
}

/** Installs what a folder asks for, where a package finds its own dependencies alone. */
async function pnpm(folder: string): Promise<void> {
  const args = [program('pnpm/bin/pnpm.mjs'), 'install', '--ignore-scripts', '--config.hoist=false'];
  await run(process.execPath, args, { cwd: folder });
}

describe('a framework', () => {
  it.each(['fastify.js', 'koa.js'])('runs the example %s: a login, a call of the API', async (file) => {
    await save(file);
    await expectProjects(file);
  });

  it('runs the example of NestJS, compiled by TypeScript with decorators', async () => {
    const folder = join(installation.reach, 'nest');
    await mkdir(folder);
    await save('nest.ts', folder);
    const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true };
    const compilerOptions = { ...COMMONJS, ...decorators, skipLibCheck: true, types: ['node'] };
    await writeFile(join(folder, 'package.json'), '{ "type": "commonjs" }');
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    await tool('tsc', '-p', 'nest');
    await expectProjects('nest/nest.js');
  });

  it('runs the example of AWS Lambda: a login and a call of the API by events of API Gateway', async () => {
    await save('lambda.js');
    Object.assign(process.env, emulator.variables);
    const { handler } = await import(pathToFileURL(join(installation.reach, 'lambda.js')).href);
    const lambda = new Lambda(handler, 'https://app.example.net');
    const projects = await lambda.logIn('/projects');
    expect(JSON.parse(projects.body)).toHaveProperty('data');
  });
});

describe('a bundler', () => {
  it.each([
    ['esbuild', ['esbuild.config.js'], ['node', 'esbuild.config.js'], 'out/esbuild.mjs'],
    ['Rollup', ['rollup.config.js'], ['rollup', '-c', '--silent'], 'out/rollup.mjs'],
    ['webpack', ['webpack.config.js'], ['webpack'], 'out/webpack.cjs'],
  ] as const)(
    '%s makes one program of the example in README.md, which logs in',
    async (_name, files, command, output) => {
      await saveApplication();
      for (const file of files) await save(file);
      const [program, ...args] = command;
      if (program === 'node') await run(process.execPath, args, { cwd: installation.reach });
      else await tool(program, ...args);
      await expectProjects(output);
    },
  );
});

describe('Jest', () => {
  // The first request of a test loads what Jest has to transform, which takes long on a machine with much else to do.
  const patterns = ['--testPathIgnorePatterns', 'nothing', '--rootDir', '.', '--testTimeout', '60000'];

  it.each(['npm', 'pnpm'])('runs the example as CommonJS through Babel, installed by %s', async (manager) => {
    const packages = { jest: '30', '@babel/preset-env': '7', supertest: '*' };
    const folder = manager === 'npm' ? installation.reach : await project(packages);
    if (manager === 'pnpm') await pnpm(folder);
    for (const file of ['jest.config.cjs', 'babel.config.cjs', 'app.test.js']) await save(file, folder);
    const args = ['--config', 'jest.config.cjs', ...patterns, 'app.test.js'];
    const { stderr } = await run(join(folder, 'node_modules/.bin/jest'), args, { cwd: folder });
    expect(stderr).toContain('1 passed');
  });

  it('runs the example through ts-jest, with types of the time before `exports`', async () => {
    await save('ts-jest.config.cjs');
    const { text } = await save('app.test.js');
    const typed = text
      .replace('let service;', "let service: import('passport-oauth-app/emulator').Emulator;")
      .replace('let strategy;', 'let strategy: Strategy;')
      .replaceAll(/deserializeUser\(\(user,/g, 'deserializeUser((user: Express.User,');
    await writeFile(join(installation.reach, 'typed.test.ts'), typed);
    const compilerOptions = { ...COMMONJS, allowJs: true, types: ['node', 'jest'] };
    await writeFile(join(installation.reach, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    const { stderr } = await tool('jest', '--config', 'ts-jest.config.cjs', ...patterns, 'typed.test.ts');
    expect(stderr).toContain('1 passed');
  });
});

describe('a package manager', () => {
  it('pnpm: the example runs where a package finds its own dependencies alone', async () => {
    const folder = await project();
    await pnpm(folder);
    await expectProjects('app.js', folder);
  });

  it("Yarn Plug'n'Play: the example runs with no node_modules", async () => {
    const folder = await project();
    const { stdout } = await run('npm', ['config', 'get', 'registry']);
    const registry = new URL(stdout.trim());
    const settings = [
      'nodeLinker: pnp',
      'enableTelemetry: false',
      'enableImmutableInstalls: false',
      `npmRegistryServer: ${JSON.stringify(registry.href)}`,
      `unsafeHttpWhitelist: [${JSON.stringify(registry.hostname)}]`,
    ];
    await writeFile(join(folder, '.yarnrc.yml'), `${settings.join('\n')}\n`);
    await writeFile(join(folder, 'yarn.lock'), '');
    const yarn = [process.execPath, program('@yarnpkg/cli-dist/bin/yarn.js')] as const;
    await run(yarn[0], [yarn[1], 'install'], { cwd: folder });
    await expectProjects([...yarn, 'node', 'app.js'], folder);
  });
});

describe('TypeScript', () => {
  it('finds the types of all entry points under moduleResolution node10', async () => {
    const compiler = join(installation.reach, 'node_modules/typescript/bin/tsc');
    const names = ['entry-points.ts', 'application.ts'];
    const outcome = await compile(installation.packed, { names, manner: 'node10', packages: EXPRESS_5, compiler });
    expect(outcome).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});
