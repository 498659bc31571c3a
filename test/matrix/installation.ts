import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Packed, pack } from '../consumers/packed.js';
import { type Combination, NODES } from './combinations.js';

const run = promisify(execFile);

/** What the matrix needs, in folders of their own. */
export interface Installation {
  /** The packed package. */
  readonly packed: Packed;
  /** Runs the smoke application as a combination wants it. Needs `combinations`. */
  smoke(combination: Combination): Promise<{ readonly stdout: string; readonly stderr: string }>;
  /** The program of a version of Node, else the one that runs now, and the folder of `stores.mjs`. Needs `stores`. */
  stores(node?: string): { readonly program: string; readonly cwd: string };
  /** The compiler's file. Needs `typescript`. */
  compiler(version: string): string;
  /** The folder with the packages of docs/frameworks.md. Needs `reach`. */
  readonly reach: string;
  /** A new folder with nothing in it. */
  emptyFolder(): Promise<string>;
  remove(): Promise<void>;
}

const application = fileURLToPath(new URL('application/', import.meta.url));

/** Packages beside ours for each framework, by the names that the smoke application loads them under. */
const WEB = [
  ...['express-5=express@5', 'express-4=express@4', 'express-4.16.0=express@4.16.0', 'connect-3=connect@3'],
  ...['passport-0.7=passport@0.7', 'passport-0.6.0=passport@0.6.0', 'cookie-session@2'],
  ...['express-session@1', 'express-session-1.17.0=express-session@1.17.0'],
  // What the package itself asks for: any version that it allows.
  'passport@0.7',
];

/** Session stores and clients of databases, by the names that stores.mjs loads them under. */
const STORES = [
  ...['express-session@1', 'passport@0.7', 'memorystore@1', 'session-file-store@1'],
  ...[6, 7, 8, 9].map((version) => `connect-redis-${version}=connect-redis@${version}`),
  ...['redis-4=redis@4', 'redis-5=redis@5', 'redis-6=redis@6', 'iovalkey@0.3'],
  ...['connect-pg-simple@10', 'pg@8', 'mysql2@3', 'express-mysql-session@3', 'connect-session-knex@5', 'knex@3'],
  ...['connect-sqlite3@0.9', 'sqlite3@5', 'better-sqlite3@12', 'connect-session-sequelize@7', 'sequelize@6'],
];

/** The packages of one platform, with nothing but the program: those named `bun` and `deno` link it by a script. */
const OTHER_RUNTIMES = [
  `bun=@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}@1`,
  `deno=@deno/${process.platform}-${process.arch}${process.platform === 'linux' ? '-glibc' : ''}@2`,
];

/** What the examples of docs/frameworks.md import and are built with. */
const REACH = [
  ...['express', 'express-session', 'passport', 'supertest', 'fastify@5', '@fastify/express@4', 'koa@3'],
  ...['koa-connect@2', 'serverless-http@4', 'esbuild', 'rollup@4', '@rollup/plugin-commonjs', '@rollup/plugin-json'],
  ...['@rollup/plugin-node-resolve', 'webpack@5', 'webpack-cli', 'jest@30', '@babel/preset-env@7', 'ts-jest@29'],
  ...['typescript@5.9', '@types/node@20', '@types/express', '@types/express-session', '@types/jest'],
  ...['@types/passport', '@types/supertest', '@nestjs/common@11', '@nestjs/core@11', '@nestjs/platform-express@11'],
  ...['@nestjs/passport@11', 'rxjs@7', 'reflect-metadata@0.2', 'pnpm', '@yarnpkg/cli-dist@4'],
];

const TYPESCRIPTS = ['5.5', '5.9', '6.0'];

/** Packs the package, and installs from the registry what is asked for. */
export async function install(
  wanted: readonly ('combinations' | 'reach' | 'stores' | 'typescript')[] = [],
): Promise<Installation> {
  const home = await mkdtemp(join(tmpdir(), 'passport-oauth-app-matrix-'));
  const packed = await pack();
  const folder = (name: string) => join(home, name);
  if (wanted.includes('typescript')) {
    const compilers = TYPESCRIPTS.map((version) => `v${version}=typescript@${version}`);
    await installed(folder('typescript'), compilers);
  }
  if (wanted.includes('reach')) await installed(folder('reach'), REACH, packed.tarball);
  if (wanted.includes('combinations')) {
    await installed(folder('node'), [...NODES.map(binary), ...OTHER_RUNTIMES]);
    await installed(folder('web'), WEB, packed.tarball);
    await installed(folder('NestJS 11'), nest('11', '0.6.0'), packed.tarball);
    await installed(folder('NestJS 12'), nest('12', '0.7'), packed.tarball);
  }
  if (wanted.includes('stores')) {
    await installed(folder('node'), ['24', '26'].map(binary));
    await installed(folder('stores'), STORES, packed.tarball);
    // The two that compile, or fetch what others have compiled.
    await run('npm', ['rebuild', 'sqlite3', 'better-sqlite3'], { cwd: folder('stores') });
  }
  return {
    packed,
    stores: (node) => ({
      program: node === undefined ? process.execPath : join(folder('node'), `node_modules/v${node}/bin/node`),
      cwd: folder('stores'),
    }),
    smoke: ({ node, framework, ...combination }) => {
      const [program, ...args] = runtime(folder('node'), node);
      const main = combination.modules === 'import' ? 'main.mjs' : 'main.cjs';
      const cwd = folder(framework.startsWith('NestJS') ? framework : 'web');
      const settings = JSON.stringify({ node, framework, ...combination });
      return run(program, [...args, main, settings], { cwd, timeout: 110_000 });
    },
    compiler: (version) => join(folder('typescript'), `node_modules/v${version}/bin/tsc`),
    reach: folder('reach'),
    emptyFolder: () => mkdtemp(folder('empty-')),
    remove: async () => {
      await packed.remove();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The command of a runtime that is installed in a folder: a version of Node, Bun or Deno. */
function runtime(folder: string, name: string): readonly [string, ...string[]] {
  if (name === 'Bun') return [join(folder, 'node_modules/bun/bin/bun')];
  if (name === 'Deno') return [join(folder, 'node_modules/deno/deno'), 'run', '--allow-all'];
  return [join(folder, `node_modules/v${name}/bin/node`)];
}

function nest(version: string, passport: string): readonly string[] {
  const own = ['common', 'core', 'platform-express', 'passport'].map((name) => `@nestjs/${name}@${version}`);
  return [...own, `passport@${passport}`, 'rxjs@7', 'reflect-metadata@0.2', 'express-session@1'];
}

/** npm's packages of Node itself, each as `v` and its version: one for each platform, with nothing but the program. */
function binary(version: string): string {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  return `v${version}=node-${platform}-${process.arch}@${version}`;
}

/** Installs packages into a folder: `name@range`, with `name` in front of it and `=` where that is to be another one. */
async function installed(folder: string, packages: readonly string[], tarball?: string): Promise<void> {
  await cp(application, folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
  const named = packages.map((spec) => spec.replace('=', '@npm:'));
  const ours = tarball === undefined ? [] : [tarball];
  // `--ignore-scripts`: nothing that is installed here needs one to work, ours included.
  await run('npm', ['install', '--ignore-scripts', '--prefer-offline', ...ours, ...named], { cwd: folder });
}
