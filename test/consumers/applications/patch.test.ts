import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applyPatch } from './patch.js';

const THEIRS = ['first', 'const theirs = "a line of the application";', 'third', 'fourth', ''].join('\n');
const blob = createHash('sha1').update(`blob ${THEIRS.length}\0${THEIRS}`).digest('hex');
const patchOf = (line: string, hash = blob) => `diff --git a/app.js b/app.js
index ${hash}..
+++ b/app.js
@@ -0,0 +1 @@
+before all
@@ -2 +3,2 @@
+${line}
+ours too
@@ -4 +5,0 @@
`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'passport-oauth-app-patch-'));
  await writeFile(join(folder, 'app.js'), THEIRS);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('a patch inserts, replaces and removes lines by their numbers', async () => {
  expect(await applyPatch(patchOf('ours'), folder)).toEqual({ removed: 2, added: 3 });
  expect(await readFile(join(folder, 'app.js'), 'utf8')).toBe('before all\nfirst\nours\nours too\nthird\n');
});

test.each([
  [
    'that was made for another file',
    patchOf('ours', '0'.repeat(40)),
    `expected the file with Git's hash ${'0'.repeat(40)}`,
  ],
  ['that quotes the application', patchOf('  const theirs = "a line of the application";'), 'quotes a line'],
])('a patch %s is refused, and changes nothing', async (_, patch, message) => {
  await expect(applyPatch(patch, folder)).rejects.toThrow(message);
  expect(await readFile(join(folder, 'app.js'), 'utf8')).toBe(THEIRS);
});
