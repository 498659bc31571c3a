// Writes the reference of each entry point into reference/, as Markdown, from the docstrings of the sources.
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

export async function writeReference() {
  const entries = entryPoints();
  rmSync(join(here, 'reference'), { recursive: true, force: true });
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
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
  for (const [index, module] of (project.children ?? []).entries()) module.name = entryNameOf(module, index, entries);
  await application.generateOutputs(project);
  await application.generateDocs(project, join(here, 'reference'));
  if (application.logger.hasErrors()) throw new Error('TypeDoc reported errors');
}

function entryNameOf(module, index, entries) {
  const file = module.sources?.[0]?.fullFileName;
  return (entries.find((entry) => entry.file === file) ?? entries[index]).name;
}
