import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Packed, pack } from './packed.js';
import { createProject, type Project } from './project.js';

let packed: Packed;
const projects: Project[] = [];
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => Promise.all([packed, ...projects].map((one) => one?.remove())));

/** Which file of src is behind which entry point. */
const ENTRY_POINTS: Readonly<Record<string, string>> = {
  'src/index.js': 'passport-oauth-app',
  'src/providers.js': 'passport-oauth-app/providers',
  'src/grants/redis-token-store.js': 'passport-oauth-app/redis',
  'src/grants/postgres-token-store.js': 'passport-oauth-app/postgres',
  'src/emulator/index.js': 'passport-oauth-app/emulator',
  'src/grants/conformance.js': 'passport-oauth-app/conformance',
};

/** The ways in which a TypeScript project finds a package, with the `type` of its package.json. */
const MANNERS = {
  'nodenext, ESM': [{ module: 'nodenext', verbatimModuleSyntax: true }, 'module'],
  'nodenext, CommonJS': [{ module: 'nodenext' }, 'commonjs'],
  'bundler resolution': [{ module: 'esnext', moduleResolution: 'bundler', verbatimModuleSyntax: true }, 'module'],
} as const;

const EXPRESS_5 = ['@types/express', '@types/express-session', '@types/passport'];
const CONNECT = ['@types/connect', '@types/passport'];
/** With all that these types import, each of the major version that Express 4 goes with. */
const EXPRESS_4 = [
  '@types/express=@types/express4',
  ...['express-serve-static-core', 'send', 'serve-static'].map(ofExpress4),
  ...['body-parser', 'connect', 'express-session', 'http-errors', 'mime', 'passport', 'qs', 'range-parser'].map(
    ofTypes,
  ),
  'undici-types',
];

function ofExpress4(name: string): string {
  return `@types/${name}=@types/express4/node_modules/@types/${name}`;
}

function ofTypes(name: string): string {
  return `@types/${name}`;
}

/** A source of this folder as a user would have written it. */
async function source(name: string): Promise<string> {
  const text = await readFile(new URL(`sources/${name}`, import.meta.url), 'utf8');
  return text.replaceAll(/'\.\.\/\.\.\/\.\.\/(src\/[^']+)'/g, (_, file: string) => `'${ENTRY_POINTS[file]}'`);
}

async function compile(name: string, manner: keyof typeof MANNERS, packages: readonly string[], extra = {}) {
  const [options, type] = MANNERS[manner];
  const project = await createProject(packed, ['@types/node', ...packages]);
  projects.push(project);
  await project.write({ [name]: await source(name), 'package.json': JSON.stringify({ type }) });
  return project.tsc({ types: ['node'], ...options, ...extra });
}

const CLEAN = { exitCode: 0, stdout: '', stderr: '' };
const manners = Object.keys(MANNERS) as (keyof typeof MANNERS)[];

describe.each(manners)('a strict TypeScript project with %s', (manner) => {
  it('uses every entry point, and needs no types but those of Node', async () => {
    expect(await compile('entry-points.ts', manner, [])).toEqual(CLEAN);
  });

  it('is told of wrong use by the compiler', async () => {
    expect(await compile('wrong-use.ts', manner, [])).toEqual(CLEAN);
  });

  it('builds an Express 5 application with no cast', async () => {
    expect(await compile('application.ts', manner, EXPRESS_5)).toEqual(CLEAN);
  });

  it('builds an Express 4 application with no cast', async () => {
    // Linked packages shall find their neighbours in the project, not in the repository, where Express 5 is.
    const preserveSymlinks = true;
    expect(await compile('application.ts', manner, EXPRESS_4, { preserveSymlinks })).toEqual(CLEAN);
  });

  it('builds a Connect application', async () => {
    expect(await compile('connect-application.ts', manner, CONNECT)).toEqual(CLEAN);
  });
});
