import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack, repository } from '../consumers/packed.js';
import { createProject, type Project } from '../consumers/project.js';
import { Reader } from '../consumers/reader.js';
import { documents, snippetsOf } from '../consumers/snippets.js';
import { walk } from '../consumers/tutorial.js';

let packed: Packed;
const projects: Project[] = [];
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => Promise.all([packed, ...projects].map((one) => one?.remove())));

async function projectWith(packages: readonly string[]): Promise<Project> {
  const project = await createProject(packed, packages);
  projects.push(project);
  return project;
}

const read = (file: string) => readFileSync(join(repository, file), 'utf8');

describe('the code in README.md and docs', () => {
  test('compiles, with names of its surroundings out of test/consumers/prelude.d.ts', async () => {
    const { dependencies, devDependencies } = manifest;
    const own = Object.keys(dependencies);
    const project = await projectWith(Object.keys(devDependencies).filter((name) => !own.includes(name)));
    const snippets = documents
      .flatMap(snippetsOf)
      .filter(({ language }) => language === 'ts' || language === 'js')
      // These import packages that are installed for test/matrix and test/interop alone, which run them.
      .filter(({ file }) => !ELSEWHERE.has(file));
    // The added line makes a module of every snippet: names of one do not stand in the way of another.
    const files = new Map<string, string>();
    for (const { document, file, text } of snippets) {
      const name = `${document}/${file}`;
      // A file that a page shows again is a later state of it.
      files.set(files.has(name) ? `${document}/later/${file}` : name, `${text}\nexport {};\n`);
    }
    expect(files.size).toBe(snippets.length);
    await project.write({
      ...Object.fromEntries(files),
      'prelude.d.ts': read('test/consumers/prelude.d.ts'),
      'package.json': '{ "type": "module" }',
    });
    const { stdout } = await project.tsc({
      module: 'nodenext',
      allowJs: true,
      checkJs: true,
      skipLibCheck: true,
      types: ['node'],
    });
    expect(stdout).toBe('');
  });

  test('names no file of the repository that is not there', () => {
    const missing = documents.flatMap((document) => {
      const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)];
      return links
        .filter(([, target = '']) => !existsSync(join(repository, dirname(document), target)))
        .map(([link]) => `${document}: ${link}`);
    });
    expect(missing).toEqual([]);
  });
});

describe('docs/errors.md', () => {
  const sources = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => read(join('src', file)));
  const sections = [...read('docs/errors.md').matchAll(/^### `(ERR_[A-Z_]+)`\n\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm)];

  test('has a heading for each code in the sources, and for no other', () => {
    const codes = sources.flatMap((text) => [...text.matchAll(/'(ERR_[A-Z_]+)'/g)].map(([, code]) => code));
    const ours = codes.filter((code) => !OF_NODE.has(code ?? ''));
    expect(sections.map(([, code]) => code).sort()).toEqual([...new Set(ours)].sort());
  });

  test('says for each code what to do', () => {
    const without = sections.filter(([, , text = '']) => !text.includes('**Remedy:** '));
    // The caller ended the call.
    expect(without.map(([, code]) => code)).toEqual(['ERR_ABORTED']);
  });

  test('names each class of errors that can be thrown', () => {
    const classes = sources.flatMap((text) =>
      [...text.matchAll(/^export class (\w+Error) extends (?:OAuthApp)?Error\b/gm)].map(([, name]) => name),
    );
    const named = new Set<string | undefined>(
      sections.flatMap(([, , text = '']) => text.match(/(?<=`)\w+Error(?=`)/g) ?? []),
    );
    expect(classes.filter((name) => !named.has(name) && !INNER_ERRORS.has(name ?? ''))).toEqual([]);
  });
});

const ELSEWHERE = new Set(['nest.ts', 'fastify.js', 'koa.js', 'lambda.js', 'app.test.js', 'sdk-clients.ts']);
/** Codes of Node that the sources compare with. */
const OF_NODE = new Set(['ERR_BUFFER_TOO_LARGE']);
/** Errors that never leave the package but as a `cause`. */
const INNER_ERRORS = new Set(['TransportError']);

describe('docs/tutorial.md', () => {
  test('leads a reader who does what it says from an empty folder to the page with the logout button', async () => {
    const project = await projectWith(['express', 'express-session', 'passport']);
    const modules = join(project.folder, 'node_modules');
    await mkdir(join(modules, '.bin'));
    await symlink(join(modules, 'passport-oauth-app/dist/cli.js'), join(modules, '.bin/passport-oauth-app'));
    await chmod(join(modules, 'passport-oauth-app/dist/cli.js'), 0o755);
    const install = (folder: string) => symlink(modules, join(folder, 'node_modules'));
    const reader = await Reader.of('docs/tutorial.md', { folder: project.folder, install });
    try {
      await walk(reader);
    } finally {
      await reader.close();
    }
  });
});
