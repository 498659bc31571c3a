import { type ExecFileException, execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Packed, repository } from './packed.js';

/** An empty folder with the package installed, and only those of its neighbours that the project asked for. */
export interface Project {
  readonly folder: string;
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** Runs a file with this Node. */
  node(file: string, ...args: string[]): Promise<Outcome>;
  /** Runs the compiler over the whole project. @param compiler Its file; the repository's own unless told */
  tsc(compilerOptions: Readonly<Record<string, unknown>>, compiler?: string): Promise<Outcome>;
  remove(): Promise<void>;
}

/** How a child process ended. */
export interface Outcome {
  readonly exitCode: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the package brings along itself; an installation has these whether it asks for them or not. */
const BROUGHT_ALONG = ['cookie', 'jose', 'passport-oauth2', 'undici'];

const ownCompiler = join(repository, 'node_modules/typescript/bin/tsc');

/**
 * Sets a project up without the registry: the package is copied in from the tarball, everything else is linked from
 * the repository's node_modules.
 *
 * @param packages As `name`, or `name=folder` for one that is to be found under another name than here.
 */
export async function createProject(packed: Packed, packages: readonly string[]): Promise<Project> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'passport-oauth-app-consumer-')));
  const modules = join(folder, 'node_modules');
  await cp(packed.folder, join(modules, 'passport-oauth-app'), { recursive: true });
  for (const named of [...BROUGHT_ALONG, ...packages]) {
    const [name = '', source = name] = named.split('=');
    const target = join(modules, name);
    await mkdir(dirname(target), { recursive: true });
    await symlink(await realpath(join(repository, 'node_modules', source)), target);
  }
  const write = async (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
  };
  return {
    folder,
    write,
    node: (file, ...args) => execute(folder, [file, ...args]),
    tsc: async (compilerOptions, compiler = ownCompiler) => {
      await write({ 'tsconfig.json': JSON.stringify({ compilerOptions: { ...STRICTEST, ...compilerOptions } }) });
      return execute(folder, [compiler, '-p', '.', '--pretty', 'false']);
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The declarations of the package and of all that they import are checked too. */
const STRICTEST = {
  target: 'es2023',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
};

function execute(cwd: string, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd }, (error: ExecFileException | null, stdout, stderr) =>
      resolve({ exitCode: error ? (error.code ?? error.signal ?? null) : 0, stdout, stderr }),
    );
  });
}
