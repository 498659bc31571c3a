import { readFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SourceTextModule } from 'node:vm';

/**
 * Looks at the import of an entry point, in a process that has done nothing before: `import-steps.mjs TASK ENTRY [ARGUMENT]`.
 *
 * - `loaded`: imports it, and names the modules of Node and the files of CommonJS packages that are loaded with it
 * - `steps`: imports one thing after the other, so that each has only its own to do, and says what each took
 * - `compile`: reads its files and compiles them, without running them
 */
const [task, entry, given = 'null'] = process.argv.slice(2);
const TASKS = { loaded, steps, compile };
process.stdout.write(JSON.stringify(await TASKS[task](JSON.parse(given))));
process.exit();

async function loaded() {
  const before = new Set(process.moduleLoadList);
  await import(entry);
  const names = process.moduleLoadList.filter((name) => !before.has(name)).map((name) => name.replace(/^\w+ /, ''));
  return {
    builtins: names.filter((name) => builtinModules.includes(name) && !name.startsWith('_')),
    files: Object.keys(createRequire(import.meta.url).cache),
  };
}

/** @param {{ name: string, modules: string[] }[]} wanted in this order */
async function steps(wanted) {
  const taken = {};
  for (const { name, modules } of wanted) {
    const since = process.cpuUsage();
    for (const one of modules) await import(one);
    const { user, system } = process.cpuUsage(since);
    taken[name] = (user + system) / 1000;
  }
  return taken;
}

/** Of the entry and all files that it imports by relative paths. */
async function compile() {
  const files = new Map();
  // What the first one of its kind takes is no matter of the entry.
  new SourceTextModule('export {};');
  let since = process.cpuUsage();
  const took = () => {
    const { user, system } = process.cpuUsage(since);
    since = process.cpuUsage();
    return (user + system) / 1000;
  };
  read(pathToFileURL(entry), files);
  const reading = took();
  for (const [url, text] of files) new SourceTextModule(text, { identifier: url });
  return { files: files.size, bytes: [...files.values()].join('').length, reading, compiling: took() };
}

function read(url, files) {
  if (files.has(url.href)) return;
  const text = readFileSync(fileURLToPath(url), 'utf8');
  files.set(url.href, text);
  for (const [, specifier] of text.matchAll(/^(?:import|export)\b[^;]*?["'](\.[^"']+)["'];/gm))
    read(new URL(specifier, url), files);
}
