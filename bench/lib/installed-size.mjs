import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * What a package and all that it depends on take on disk. Peers are not counted: the application has them anyway.
 *
 * @param {string} folder of the package
 * @param {(file: string) => boolean} [isPublished] of the package itself, for a working copy
 */
export function installedSize(folder, isPublished = () => true) {
  const seen = new Map();
  add(folder, seen, isPublished);
  const bytes = [...seen.values()].reduce((sum, size) => sum + size, 0);
  return { packages: seen.size, bytes };
}

function add(folder, seen, isPublished) {
  if (seen.has(folder)) return;
  seen.set(folder, sizeOf(folder, folder, isPublished));
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) add(find(name, folder), seen, () => true);
}

/** As Node looks for it: in the nearest `node_modules` upwards. */
function find(name, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(candidate)) return candidate;
    if (dirname(folder) === folder) throw new Error(`${name} is not installed`);
  }
}

function sizeOf(folder, root, isPublished) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name === 'node_modules') continue;
    if (entry.isDirectory()) bytes += sizeOf(path, root, isPublished);
    else if (isPublished(path.slice(root.length + 1))) bytes += lstatSync(path).size;
  }
  return bytes;
}
