import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** The command, built into a folder of its own. */
export interface BuiltCommand {
  readonly folder: string;
  readonly path: string;
  remove(): void;
}

/** Builds the command from the emulator's folder only, which also shows that it imports nothing from the rest of the package. */
export function buildCommand(): BuiltCommand {
  const folder = mkdtempSync(join(tmpdir(), 'emulator-command-'));
  const tsc = join(project, 'node_modules/typescript/bin/tsc');
  const options = ['--rootDir', 'src/emulator', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
  const args = [tsc, '--ignoreConfig', '--outDir', folder, ...options, 'src/emulator/emulator-command.ts'];
  execFileSync(process.execPath, args, { cwd: project });
  const run = 'process.exitCode = await emulatorCommand(process.argv.slice(2));';
  writeFileSync(join(folder, 'cli.js'), `import { emulatorCommand } from './emulator-command.js';\n${run}\n`);
  writeFileSync(join(folder, 'package.json'), '{"type":"module","version":"1.2.3"}');
  return { folder, path: join(folder, 'cli.js'), remove: () => rmSync(folder, { recursive: true }) };
}
