import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The folder of the repository. */
export const repository = fileURLToPath(new URL('../../', import.meta.url));

/** The package as the registry would have it. */
export interface Packed {
  /** The tarball. */
  readonly tarball: string;
  /** Its contents, unpacked. */
  readonly folder: string;
  /** Paths of its files, sorted, with no leading `package/`. */
  readonly files: readonly string[];
  text(file: string): Promise<string>;
  remove(): Promise<void>;
}

/** What `npm pack` needs to build and to choose from. Tests and tools stay outside, so no run can pick them up by chance. */
const INGREDIENTS = [
  'package.json',
  'tsconfig.json',
  'build.mjs',
  'rolldown.config.ts',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  'src',
  'docs',
];

/**
 * Builds and packs the package by `npm pack`, its scripts included, in a folder of its own: a `dist` that is older
 * than the sources, or is being written by somebody else, has no part in it. Once, where `packed-once.ts` sets that up.
 */
export async function pack(): Promise<Packed> {
  if (process.env.PACKED !== undefined) return packedAs(JSON.parse(process.env.PACKED), async () => {});
  const home = await mkdtemp(join(tmpdir(), 'passport-oauth-app-packed-'));
  const stage = join(home, 'stage');
  await mkdir(stage);
  for (const name of INGREDIENTS) await cp(join(repository, name), join(stage, name), { recursive: true });
  await symlink(join(repository, 'node_modules'), join(stage, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', home], { cwd: stage });
  // Scripts may print before npm does.
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [PackReport];
  const [tarball, folder] = [join(home, filename), join(home, 'package')];
  await run('tar', ['-xzf', tarball, '-C', home]);
  const parts = { tarball, folder, files: files.map(({ path }) => path).sort() };
  return packedAs(parts, () => rm(home, { recursive: true, force: true }));
}

function packedAs(parts: Pick<Packed, 'tarball' | 'folder' | 'files'>, remove: () => Promise<void>): Packed {
  return { ...parts, text: (file) => readFile(join(parts.folder, file), 'utf8'), remove };
}

interface PackReport {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}
