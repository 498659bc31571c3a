import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The state of the package before the next release began. */
const REVISION = '5089aee';

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string | undefined;

/** Removes what {@link formerWorker} has built. */
export function removeFormerVersion(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
}

/** Builds the former version, once, and returns the script of a process of it. Needs the history of the repository. */
export async function formerWorker(): Promise<string> {
  folder ??= build();
  return join(folder, 'test/support/grant-worker.mjs');
}

function build(): string {
  const built = mkdtempSync(join(tmpdir(), 'former-version-'));
  const archive = execFileSync('git', ['archive', REVISION], { cwd: root, maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', built], { input: archive });
  symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'));
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: built, stdio: ['ignore', 'ignore', 'inherit'] });
  return built;
}
