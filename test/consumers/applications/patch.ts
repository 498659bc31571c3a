import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * One change of a patch. A patch is the output of `git diff -U0 --full-index` without its removed lines: it names a file by the
 * hash of its whole content, and the lines that go by their numbers, so that it quotes nothing of the application.
 */
interface Hunk {
  readonly from: number;
  readonly count: number;
  readonly lines: string[];
}

interface FileChange {
  readonly file: string;
  /** Git's hash of the file that the hunks were made for. */
  readonly blob: string;
  readonly hunks: Hunk[];
}

/** What a patch has done. */
export interface Applied {
  readonly removed: number;
  readonly added: number;
}

/**
 * Applies a patch to a checkout.
 *
 * @throws Error if a file is not the one that the patch was made for, or if a line of the patch is one of the application
 */
export async function applyPatch(patch: string, folder: string): Promise<Applied> {
  let [removed, added] = [0, 0];
  for (const { file, blob, hunks } of changesOf(patch)) {
    const path = join(folder, file);
    const bytes = await readFile(path);
    const found = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
    if (found !== blob) throw new Error(`${file}: expected the file with Git's hash ${blob}, got ${found}`);
    const before = bytes.toString().split('\n');
    const known = new Set(before.map((line) => line.trim()));
    const quoted = hunks.flatMap(({ lines }) => lines).find((line) => isSentence(line) && known.has(line.trim()));
    if (quoted !== undefined) throw new Error(`${file}: the patch quotes a line of the application: ${quoted}`);
    const after = [...before];
    // From the end, so that the numbers of the lines before stay.
    for (const { from, count, lines } of hunks.toReversed()) {
      after.splice(count === 0 ? from : from - 1, count, ...lines);
      removed += count;
      added += lines.length;
    }
    await writeFile(path, after.join('\n'));
  }
  return { removed, added };
}

/** Brackets alone, and lines such as `passReqToCallback: true,`, are nobody's. */
const isSentence = (line: string): boolean => line.trim().length > 24;

function changesOf(patch: string): readonly FileChange[] {
  return patch
    .split(/^diff --git .*\n/m)
    .slice(1)
    .map((text) => {
      const [, blob = ''] = /^index ([0-9a-f]{40})\.\./m.exec(text) ?? [];
      const [, file = ''] = /^\+\+\+ b\/(.+)$/m.exec(text) ?? [];
      const hunks = [...text.matchAll(/^@@ -(\d+)(?:,(\d+))? .*\n((?:\+.*\n?)*)/gm)].map(
        ([, from, count = '1', lines = '']) => ({
          from: Number(from),
          count: Number(count),
          lines:
            lines === ''
              ? []
              : lines
                  .replace(/\n$/, '')
                  .split('\n')
                  .map((line) => line.slice(1)),
        }),
      );
      return { file, blob, hunks };
    });
}
