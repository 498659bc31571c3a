// Writes the reference of each entry point as Markdown, from the docstrings of the sources.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Application } from 'typedoc';

const here = import.meta.dirname;
const repository = join(here, '..');

/** Sources of the entry points by the names that applications import: rolldown.config.ts has the list. */
export function entryPoints() {
  const config = readFileSync(join(repository, 'rolldown.config.ts'), 'utf8');
  const list = /const entryPoints[^{]*\{([^}]*)\}/.exec(config)?.[1] ?? '';
  const { name, exports } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
  return [...list.matchAll(/'?([\w/-]+)'?: '(src\/[^']+)'/g)]
    .map(([, entry, file]) => ({ path: entry === 'index' ? '.' : `./${entry}`, file: join(repository, file) }))
    .filter(({ path }) => path in exports)
    .map(({ path, file }) => ({ name: path.replace('.', name), file }));
}

/** @param folder - Is replaced as a whole. */
export async function writeReference(folder) {
  const entries = entryPoints();
  rmSync(folder, { recursive: true, force: true });
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    outputs: [{ name: 'markdown', path: folder }],
    entryPoints: entries.map(({ file }) => file),
    basePath: join(repository, 'src'),
    tsconfig: join(here, 'tsconfig.json'),
    readme: 'none',
    disableGit: true,
    disableSources: true,
    excludePrivate: true,
    excludeInternal: true,
    excludeExternals: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    entryFileName: 'index',
    outputFileStrategy: 'modules',
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    logLevel: 'Error',
  });
  const project = await application.convert();
  if (project === undefined) throw new Error('TypeDoc could not read the sources');
  // TypeDoc names a module after its file. Applications know it by the entry point.
  for (const module of project.children ?? []) module.name = entryNameOf(module.name, entries);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error('TypeDoc reported errors');
}

function entryNameOf(moduleName, entries) {
  // src/index.ts has the name of the package already.
  if (entries.some(({ name }) => name === moduleName)) return moduleName;
  const files = ['.ts', '/index.ts'].map((ending) => join(repository, 'src', moduleName + ending));
  const entry = entries.find(({ file }) => files.includes(file));
  if (entry === undefined) throw new Error(`No entry point is built from ${moduleName}`);
  return entry.name;
}
