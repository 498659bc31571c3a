import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Packed, pack } from '../consumers/packed.js';
import { type Combination, NODES } from './combinations.js';

const run = promisify(execFile);

/** Everything that the combinations need, in folders of their own. */
export interface Installation {
  /** The packed package. */
  readonly packed: Packed;
  /** Runs a file of the smoke application as a combination wants it. */
  smoke(combination: Combination): Promise<{ readonly stdout: string; readonly stderr: string }>;
  /** An empty folder that nothing was installed into. */
  emptyFolder(name: string): Promise<string>;
  remove(): Promise<void>;
}

const application = fileURLToPath(new URL('application/', import.meta.url));

/** Packages beside ours for each framework, by the names that the smoke application loads them under. */
const WEB = {
  'express-5': 'express@5',
  'express-4': 'express@4',
  'express-4.16.0': 'express@4.16.0',
  'connect-3': 'connect@3',
  'passport-0.7': 'passport@0.7',
  'passport-0.6.0': 'passport@0.6.0',
  'express-session': 'express-session@1',
  'express-session-1.17.0': 'express-session@1.17.0',
  'cookie-session': 'cookie-session@2',
  // What the package itself asks for: any version that it allows.
  passport: 'passport@0.7',
};

/** Packs the package and installs it beside the frameworks, and all Node versions, from the registry. */
export async function install(): Promise<Installation> {
  const home = await mkdtemp(join(tmpdir(), 'passport-oauth-app-matrix-'));
  const packed = await pack();
  const folders = {
    nodes: await installed(
      join(home, 'nodes'),
      Object.fromEntries(NODES.map((node) => [`node-${node}`, binary(node)])),
    ),
    web: await installed(join(home, 'web'), WEB, packed.tarball),
    'NestJS 11': await installed(join(home, 'nest-11'), nest('11', '0.6.0'), packed.tarball),
    'NestJS 12': await installed(join(home, 'nest-12'), nest('12', '0.7'), packed.tarball),
  };
  const folderOf = ({ framework }: Combination) =>
    framework === 'NestJS 11' || framework === 'NestJS 12' ? folders[framework] : folders.web;
  return {
    packed,
    smoke: (combination) =>
      run(
        join(folders.nodes, 'node_modules', `node-${combination.node}`, 'bin/node'),
        [combination.modules === 'import' ? 'main.mjs' : 'main.cjs', JSON.stringify(combination)],
        { cwd: folderOf(combination), timeout: 60_000 },
      ),
    emptyFolder: async (name) => {
      await mkdir(join(home, name));
      return join(home, name);
    },
    remove: async () => {
      await packed.remove();
      await rm(home, { recursive: true, force: true });
    },
  };
}

function nest(version: string, passport: string): Readonly<Record<string, string>> {
  const own = ['common', 'core', 'platform-express', 'passport'].map((name) => `@nestjs/${name}`);
  const others = { passport, rxjs: '7', 'reflect-metadata': '0.2', 'express-session': '1' };
  return Object.fromEntries([
    ...own.map((name) => [name, `${name}@${version}`]),
    ...Object.entries(others).map(([name, range]) => [name, `${name}@${range}`]),
  ]);
}

/** npm's packages of Node itself: one for each platform, with nothing but the program. */
function binary(version: string): string {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  return `node-${platform}-${process.arch}@${version}`;
}

async function installed(
  folder: string,
  packages: Readonly<Record<string, string>>,
  tarball?: string,
): Promise<string> {
  await cp(application, folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
  const named = Object.entries(packages).map(([name, spec]) => `${name}@npm:${spec}`);
  const ours = tarball === undefined ? [] : [tarball];
  // `--ignore-scripts`: nothing that is installed here needs one to work, ours included.
  await run('npm', ['install', '--ignore-scripts', '--prefer-offline', ...ours, ...named], { cwd: folder });
  return folder;
}
