// Bundles the package, and the simulation, into one file each in a temporary folder.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

/** How `package.ts` names the source of the package. */
const SOURCE = '../../src/';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** Installs what stands for the server, once: a Lua interpreter. */
export function installSimulation() {
  if (existsSync(path('node_modules/fengari'))) return;
  execFileSync('npm', ['ci', '--no-fund', '--no-audit'], { cwd: path('.'), stdio: ['ignore', 'ignore', 'inherit'] });
}

/**
 * Returns the package as the body of a CommonJS function. All that is not the package's own code comes from the
 * function's parameters, so that each simulated process has an instance, a clock and timers of its own.
 */
async function packageCode(source) {
  const bundle = await rolldown({
    input: path('package.ts'),
    // The version of the package that `package.ts` stands for.
    plugins: [
      {
        name: 'source',
        resolveId: (id) =>
          id.startsWith(SOURCE) ? resolve(source, id.slice(SOURCE.length).replace(/\.js$/, '.ts')) : null,
      },
    ],
    platform: 'node',
    external: /^(?!\.|\/)/,
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'cjs', codeSplitting: false, sourcemap: false });
  await bundle.close();
  // A module that is loaded late is loaded at once here: reading a file takes real time.
  return output[0].code.replace(/\bimport\((["'`][^"'`]+["'`])\)/g, 'Promise.resolve().then(() => require($1))');
}

/** Returns the source of the package at a commit or tag. @throws where the history is not there */
function sourceAt(revision, directory) {
  const archive = execFileSync('git', ['archive', revision, 'src'], { cwd: path('../..'), maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  return join(directory, 'src');
}

/** Returns where both are in a folder that was bundled into. */
export function filesOf(directory) {
  const [packageFile, moduleFile] = ['package.cjs', 'simulation.mjs'].map((name) => join(directory, name));
  return { directory, packageFile, besideFile: undefined, module: pathToFileURL(moduleFile).href };
}

/**
 * Bundles both, and returns the URL of the module that runs simulations and the file with the package's code.
 *
 * @param beside A commit or tag, whose package is bundled too
 */
export async function bundleSimulation(source = path('../../src'), beside = undefined) {
  installSimulation();
  const directory = mkdtempSync(join(tmpdir(), 'simulation-'));
  const files = filesOf(directory);
  writeFileSync(files.packageFile, await packageCode(source));
  const besideFile = beside && join(directory, 'beside.cjs');
  if (beside) writeFileSync(besideFile, await packageCode(sourceAt(beside, directory)));
  const bundle = await rolldown({ input: path('simulation.ts'), platform: 'node', logLevel: 'silent' });
  await bundle.write({ file: fileURLToPath(files.module), format: 'esm', codeSplitting: false });
  await bundle.close();
  return { ...files, besideFile };
}
