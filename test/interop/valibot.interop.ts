import { inspect } from 'node:util';
import type { ApiError } from 'passport-oauth-app';
import * as valibot from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { client, server, startApiForEachTest, tokenOf } from '../api/fixture.js';
import * as faulty from '../support/faulty-server.js';

startApiForEachTest();

describe('the option schema', () => {
  const schema = valibot.object({
    data: valibot.object({ id: valibot.pipe(valibot.number(), valibot.transform(String)) }),
  });

  test('returns the output of a schema of Valibot, with its type', async () => {
    server.always(faulty.json({ data: { id: 7, name: 'Site', createdAt: '2026-01-02' } }));
    const project = await client.post('/projects', { json: {}, schema });
    expectTypeOf(project).toEqualTypeOf<{ data: { id: string } }>();
    expect(project).toEqual({ data: { id: '7' } });
  });

  test('makes a mismatch an ApiError with the issues of Valibot, which no log shows', async () => {
    server.always(faulty.json({ data: { id: tokenOf('first') } }));
    const error: ApiError = await client.get('/projects/7', { schema }).then(
      () => expect.fail('it should have failed'),
      (reason) => reason,
    );
    expect(error).toMatchObject({ name: 'ApiError', code: 'ERR_API_RESPONSE', status: 502, path: '/projects/7' });
    expect(error.message).toContain('data.id');
    expect(error.issues?.[0]?.path?.length).toBeGreaterThan(0);
    const shown = [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), error.stack].join();
    for (const part of tokenOf('first').split('.')) expect(shown).not.toContain(part);
  });
});
