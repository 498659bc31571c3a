import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repository } from '../consumers/packed.js';

const run = promisify(execFile);
const env = {
  GITHUB_REPOSITORY: 'someone/project',
  GITHUB_REF_NAME: 'v1.2.3',
  GITHUB_SERVER_URL: 'https://git.example',
};

/** A checkout as the release workflow has it, prepared for publishing. */
let checkout: string;
beforeAll(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'passport-oauth-app-release-'));
  for (const name of ['package.json', 'README.md', 'docs', '.github/release']) {
    await cp(join(repository, name), join(checkout, name), { recursive: true });
  }
  await run(process.execPath, ['.github/release/prepare.mjs'], { cwd: checkout, env: { ...process.env, ...env } });
});
afterAll(() => rm(checkout, { recursive: true, force: true }));

const read = (file: string) => readFile(join(checkout, file), 'utf8');

describe('the release workflow', () => {
  test('gives package.json the addresses of the repository that it runs in, and changes nothing else', async () => {
    const { homepage, bugs, repository: source, ...rest } = JSON.parse(await read('package.json'));
    expect(homepage).toBe('https://git.example/someone/project#readme');
    expect(bugs).toEqual({ url: 'https://git.example/someone/project/issues' });
    expect(source).toEqual({ type: 'git', url: 'git+https://git.example/someone/project.git' });
    expect(rest).toEqual(JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')));
  });

  test('makes every link of README.md absolute, to the files of the released version', async () => {
    const readme = await read('README.md');
    expect(readme).toContain('](https://git.example/someone/project/blob/v1.2.3/docs/tutorial.md)');
    const targets = [...readme.matchAll(/\]\(([^)]+)\)|<img [^>]*src="([^"]+)"/g)];
    expect(targets.filter(([, link, image = '']) => !/^(?:https:|#)/.test(link ?? image))).toEqual([]);
  });

  test('makes links of docs to pages that are not published absolute, and no others', async () => {
    const security = await read('docs/security.md');
    expect(security).toContain('](https://git.example/someone/project/blob/v1.2.3/docs/refresh-protocol.md)');
    expect(security).toContain('](https://git.example/someone/project/blob/v1.2.3/docs/figures/security.md#threats-');
    expect(security).toContain('](embedded.md)');
    expect(security).toContain('](../SECURITY.md)');
  });

  test('refuses to run where it cannot know the repository', async () => {
    const { GITHUB_REPOSITORY: _none, ...others } = { ...process.env, ...env };
    const outcome = run(process.execPath, ['.github/release/prepare.mjs'], { cwd: checkout, env: others });
    await expect(outcome).rejects.toThrow('GITHUB_REPOSITORY');
  });
});

describe('the steps of the release', () => {
  test('prepare the addresses before they publish', async () => {
    const workflow = await readFile(join(repository, '.github/workflows/ci.yml'), 'utf8');
    const [, publish = ''] = workflow.split(/^ {2}publish:$/m);
    expect(publish.indexOf('.github/release/prepare.mjs')).toBeGreaterThan(0);
    expect(publish.indexOf('npm publish')).toBeGreaterThan(publish.indexOf('.github/release/prepare.mjs'));
  });

  test('find the version of package.json in CHANGELOG.md', async () => {
    const { version } = JSON.parse(await read('package.json'));
    expect(await readFile(join(repository, 'CHANGELOG.md'), 'utf8')).toContain(`\n## [${version}] - `);
  });
});
