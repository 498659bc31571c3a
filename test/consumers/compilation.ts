import { readFile } from 'node:fs/promises';
import { entryPoints } from '../../rolldown.config.js';
import type { Packed } from './packed.js';
import { createProject, type Outcome } from './project.js';

/** Entry points of the package, by the path of their compiled source. */
const ENTRY_POINTS = new Map(
  Object.entries(entryPoints).map(([name, file]) => [
    file.replace(/\.ts$/, '.js'),
    name === 'index' ? 'passport-oauth-app' : `passport-oauth-app/${name}`,
  ]),
);

/** The ways in which a TypeScript project finds a package, with the `type` of its package.json. */
export const MANNERS = {
  'nodenext, ESM': [{ module: 'nodenext', verbatimModuleSyntax: true }, 'module'],
  'nodenext, CommonJS': [{ module: 'nodenext' }, 'commonjs'],
  // For compilers up to TypeScript 6.
  node10: [{ module: 'commonjs', moduleResolution: 'node10', esModuleInterop: true }, 'commonjs'],
  'bundler resolution': [{ module: 'esnext', moduleResolution: 'bundler', verbatimModuleSyntax: true }, 'module'],
} as const;

/** Types beside ours for each framework. */
export const EXPRESS_5 = ['@types/express', '@types/express-session', '@types/passport'];
export const CONNECT = ['@types/connect', '@types/passport'];
/** What to compile, and how. */
export interface Compilation {
  /** Files of `sources`. */
  readonly names: readonly string[];
  readonly manner: keyof typeof MANNERS;
  readonly packages?: readonly string[];
  readonly options?: Readonly<Record<string, unknown>>;
  readonly compiler?: string;
}

/** Compiles sources as users would have written them, in a strict project of its own. */
export async function compile(
  packed: Packed,
  { names, manner, packages = [], options = {}, compiler }: Compilation,
): Promise<Outcome> {
  const [ofManner, type] = MANNERS[manner];
  const project = await createProject(packed, ['@types/node', ...packages]);
  try {
    for (const name of names) await project.write({ [name]: await source(name) });
    await project.write({ 'package.json': JSON.stringify({ type }) });
    return await project.tsc({ types: ['node'], ...ofManner, ...options }, compiler);
  } finally {
    await project.remove();
  }
}

/** A source of this folder as a user would have written it. */
async function source(name: string): Promise<string> {
  const text = await readFile(new URL(`sources/${name}`, import.meta.url), 'utf8');
  return text.replaceAll(/'\.\.\/\.\.\/\.\.\/(src\/[^']+)'/g, (_, file: string) => `'${ENTRY_POINTS.get(file)}'`);
}
