import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import session from 'express-session';
import { sessionTokenStore } from 'passport-oauth-app';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { afterAll, describe, expect, test } from 'vitest';

type SessionStoreLike = Parameters<typeof sessionTokenStore>[0];

// It has no types of its own.
const sessionFileStore: (express: typeof session) => new (options: object) => SessionStoreLike = createRequire(
  import.meta.url,
)('session-file-store');

const folders: string[] = [];

async function fileStore(options: object = {}): Promise<{ store: SessionStoreLike; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'grants-'));
  folders.push(folder);
  const FileStore = sessionFileStore(session);
  return { store: new FileStore({ path: folder, reapInterval: -1, logFn: () => undefined, ...options }), folder };
}

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

describe('over session-file-store', () => {
  const checks = tokenStoreChecks(async () => sessionTokenStore((await fileStore({ retries: 0 })).store));
  for (const { name, run } of checks) test(name, run);

  test('creates a file for each grant, and deletes it', async () => {
    const { store, folder } = await fileStore();
    const tokens = sessionTokenStore(store);
    await tokens.set('id', { version: 1, expiresAt: 2, sealed: 'sealed-text' });
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^oauth-app-grant\.[a-z0-9]{20}\.json$/)]);
    await tokens.delete('id');
    expect(await tokens.get('id')).toBeUndefined();
  });
});
