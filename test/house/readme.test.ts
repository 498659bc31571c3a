import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack, repository } from '../consumers/packed.js';
import { createProject, type Project } from '../consumers/project.js';
import { documents, snippetsOf } from '../consumers/snippets.js';
import { freePort, startApplication, startEmulatorCommand } from '../consumers/stranger.js';

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
    const snippets = documents.flatMap(snippetsOf).filter(({ language }) => language === 'ts' || language === 'js');
    // The added line makes a module of every snippet: names of one do not stand in the way of another.
    const files = snippets.map(({ document, file, text }) => [`${document}/${file}`, `${text}\nexport {};\n`]);
    expect(new Set(files.map(([name]) => name)).size).toBe(files.length);
    await project.write({
      ...Object.fromEntries(files),
      'prelude.d.ts': read('test/consumers/prelude.d.ts'),
      'package.json': '{ "type": "module" }',
    });
    // As strict as most projects are, which is less than this one.
    const { stdout } = await project.tsc({
      exactOptionalPropertyTypes: false,
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
      const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)].map(
        ([, target = '']) => target,
      );
      return links
        .filter((target) => !existsSync(join(repository, dirname(document), target)))
        .map((target) => `${document}: ${target}`);
    });
    expect(missing).toEqual([]);
  });
});

describe('docs/errors.md', () => {
  const sources = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => read(join('src', file)));
  const rows = [...read('docs/errors.md').matchAll(/^\| `(ERR_[A-Z_]+)` \| (?:`(\w+)`)?/gm)];

  test('has a row for each code in the sources, and for no other', () => {
    const codes = sources.flatMap((text) => [...text.matchAll(/'(ERR_[A-Z_]+)'/g)].map(([, code]) => code));
    const ours = codes.filter((code) => !OF_NODE.has(code ?? ''));
    expect(rows.map(([, code]) => code).sort()).toEqual([...new Set(ours)].sort());
  });

  test('names each class of errors that can be thrown', () => {
    const classes = sources.flatMap((text) =>
      [...text.matchAll(/^export class (\w+Error) extends (?:OAuthApp)?Error\b/gm)].map(([, name]) => name),
    );
    const named = new Set(rows.map(([, , name]) => name));
    expect(classes.filter((name) => !named.has(name) && !INNER_ERRORS.has(name ?? ''))).toEqual([]);
  });
});

/** Codes of Node that the sources compare with. */
const OF_NODE = new Set(['ERR_BUFFER_TOO_LARGE']);
/** Errors that never leave the package but as a `cause`. */
const INNER_ERRORS = new Set(['TransportError']);

describe('the first snippet of README.md', () => {
  test('stands before line 40 and has at most 20 lines', () => {
    const [snippet] = snippetsOf('README.md').filter(({ language }) => language === 'js');
    const lines = snippet?.text.split('\n').filter((line) => line.trim() !== '') ?? [];
    expect(lines.length).toBeLessThanOrEqual(20);
    expect(snippet?.line).toBeLessThan(40);
  });

  test('logs in as it stands, its port aside, with what the command of the emulator prints', async () => {
    const project = await projectWith(['express', 'express-session', 'passport']);
    const [snippet] = snippetsOf('README.md').filter(({ language }) => language === 'js');
    const port = await freePort();
    const emulator = await startEmulatorCommand(project.folder, [
      '--port',
      '0',
      '--redirect-url',
      `http://localhost:${port}/callback`,
    ]);
    await project.write({ 'app.mjs': snippet?.text.replaceAll('3000', String(port)) ?? '' });
    const application = await startApplication(project.folder, 'app.mjs', emulator.variables, port);
    try {
      const page = await application.logIn();
      expect(JSON.parse(page)).toHaveProperty('data');
      expect(application.stderr()).toBe('');
    } finally {
      await application.stop();
      await emulator.stop();
    }
  });
});

describe('the snippet of README.md about tests', () => {
  test('runs, and leaves nothing running', async () => {
    const project = await projectWith([]);
    const snippet = snippetsOf('README.md').find(({ text }) => text.includes('startEmulator'));
    // It builds on what stands above it.
    const before = "import { Strategy } from 'passport-oauth-app';";
    await project.write({ 'test.mjs': `${before}\n${snippet?.text}await strategy.close();\n` });
    expect(await project.node('test.mjs')).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});
