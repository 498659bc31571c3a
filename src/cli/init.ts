import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { applicationFiles, type ModuleFormat } from './templates.js';

const usage = `Usage: passport-oauth-app init [--typescript]

Writes into this folder: an application, its .env for the emulator, and a test.
Never overwrites a file.

Options:
  --typescript  writes app.mts and app.test.mts instead of app.js and app.test.js
  --help        prints this text
`;

/** Writes the files of a new application into the current folder. Returns the exit code. */
export function init(args: readonly string[]): number {
  let typescript: boolean | undefined;
  try {
    const options = { typescript: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
    const { values } = parseArgs({ args: [...args], options });
    if (values.help) {
      process.stdout.write(usage);
      return 0;
    }
    typescript = values.typescript;
  } catch {
    process.stderr.write(usage);
    return 2;
  }
  const format: ModuleFormat = typescript ? 'typescript' : formatOfFolder();
  const files = applicationFiles(format, randomBytes(32).toString('base64url'));
  for (const [name, text] of Object.entries(files)) process.stdout.write(`${write(name, text)} ${name}\n`);
  process.stdout.write(nextSteps(format));
  return 0;
}

/** Returns the format that Node reads in the .js files of this folder. */
function formatOfFolder(): ModuleFormat {
  if (!existsSync('package.json')) return 'commonjs';
  try {
    const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8').replace(/^\ufeff/, ''));
    return Object(manifest).type === 'module' ? 'module' : 'commonjs';
  } catch {
    return 'commonjs';
  }
}

function write(name: string, text: string): 'wrote' | 'kept ' {
  try {
    // Holds a secret: for this user alone.
    writeFileSync(name, text, { flag: 'wx', mode: name === '.env' ? 0o600 : 0o666 });
    return 'wrote';
  } catch (error) {
    if (Object(error).code === 'EEXIST') return 'kept ';
    throw error;
  }
}

function nextSteps(format: ModuleFormat): string {
  const types = 'typescript tsx @types/node @types/express @types/express-session @types/passport';
  const packages = format === 'typescript' ? `\nnpm install -D ${types}` : '';
  const node = format === 'typescript' ? 'npx tsx --env-file=.env app.mts' : 'node --env-file=.env app.js';
  const test = format === 'typescript' ? 'npx tsx --test app.test.mts' : 'node --test';
  return `
If you have not yet:    npm install passport-oauth-app passport express express-session${packages}
In one terminal:        npx passport-oauth-app emulator
In another one:         ${node}
Then open:              http://localhost:3000/projects
The test:               ${test}

.env has the settings of the emulator. For a real service, replace them, then run
npx passport-oauth-app doctor. Keep .env out of version control.
`;
}
