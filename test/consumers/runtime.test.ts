import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Packed, pack, repository } from './packed.js';
import { createProject, type Project } from './project.js';

let packed: Packed;
let project: Project;
let entryPoints: readonly string[];

beforeAll(async () => {
  packed = await pack();
  project = await createProject(packed, []);
  const { exports } = JSON.parse(await readFile(`${repository}package.json`, 'utf8')) as { exports: object };
  entryPoints = Object.keys(exports)
    // The fixtures can be loaded by their test runners only.
    .filter((key) => !['./package.json', './emulator/vitest', './emulator/playwright'].includes(key))
    .map((key) => key.replace('.', 'passport-oauth-app'));
});
afterAll(() => Promise.all([packed?.remove(), project?.remove()]));

/** What a user would have to type to get at each entry point, and what is printed of it. */
async function namesOf(
  file: string,
  load: (entryPoint: string) => string,
): Promise<Readonly<Record<string, string[]>>> {
  const lines = entryPoints.map((name) => `print('${name}', ${load(name)});`);
  const print = 'const found = {}; const print = (name, module) => { found[name] = Object.keys(module).sort(); };';
  await project.write({ [file]: [print, ...lines, 'console.log(JSON.stringify(found));'].join('\n') });
  const { exitCode, stdout, stderr } = await project.node(file);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return JSON.parse(stdout) as Readonly<Record<string, string[]>>;
}

describe('an installed package', () => {
  test('gives the same names to import and to require(), from every entry point, with no warning', async () => {
    const imported = await namesOf('esm.mjs', (name) => `await import('${name}')`);
    // Node adds this name for `require()` of an ES module that has no default export.
    const required = await namesOf('cjs.cjs', (name) => `require('${name}')`);
    expect(Object.keys(imported)).toEqual(entryPoints);
    expect(imported['passport-oauth-app']).toContain('Strategy');
    expect(required).toEqual(imported);
  });

  test('gives require() and import one and the same classes, so instanceof holds across both', async () => {
    const text = `const { OAuthAppError } = require('passport-oauth-app');
      import('passport-oauth-app').then((imported) => console.log(imported.OAuthAppError === OAuthAppError));`;
    await project.write({ 'both.cjs': text });
    expect(await project.node('both.cjs')).toEqual({ exitCode: 0, stdout: 'true\n', stderr: '' });
  });

  test('hides its inner files: only what the documentation names can be imported', async () => {
    const text = `import('passport-oauth-app/dist/chunks/redaction.js').catch(({ code }) => console.log(code));`;
    await project.write({ 'inner.mjs': text });
    expect((await project.node('inner.mjs')).stdout).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');
  });

  test('passes a part that cannot be loaded, as during an upgrade, on as an error', async () => {
    const text = `import { readdirSync, renameSync } from 'node:fs';
      import { Strategy } from 'passport-oauth-app';
      const chunks = 'node_modules/passport-oauth-app/dist/chunks/';
      const parts = readdirSync(chunks).filter((name) => name.startsWith('authenticate'));
      for (const name of parts) renameSync(chunks + name, chunks + name + '.moved');
      const strategy = new Strategy({ authUrl: 'https://auth.test', baseUrl: 'https://api.test', clientID: 'client',
        clientSecret: 'secret', callbackURL: '/callback', scope: [] });
      const error = new Promise((resolve) => {
        const none = () => {};
        const actions = { success: none, fail: none, redirect: none, error: resolve };
        Object.assign(Object.create(strategy), actions).authenticate({ method: 'GET', url: '/login', headers: {} });
      });
      console.log((await error).code);
      for (const name of parts) renameSync(chunks + name + '.moved', chunks + name);`;
    await project.write({ 'upgrade.mjs': text });
    expect(await project.node('upgrade.mjs')).toEqual({ exitCode: 0, stdout: 'ERR_MODULE_NOT_FOUND\n', stderr: '' });
  });

  test('brings a command that explains itself', async () => {
    const { exitCode, stdout } = await project.node('node_modules/passport-oauth-app/dist/cli.js', '--help');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('Usage: passport-oauth-app COMMAND');
  });
});
