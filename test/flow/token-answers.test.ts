import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { answer } from '../support/faulty-server.js';
import { openAtCallback, openWithEndpoint, visit, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import type { World } from '../support/world.js';

const jwt = (claims: object) =>
  `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const good = { access_token: jwt({ sub: '1' }), token_type: 'bearer', expires_in: 7200, refresh_token: 'r' };

/** Logs in while the token endpoint gives this answer. */
async function logInWith(fault: Parameters<World['service']['fail']>[1]) {
  const callback = await openAtCallback({ strategy: { userProfile: async () => ({ id: '1' }) } });
  world.service.fail('token', fault);
  return visit(callback);
}

test('an answer of the token endpoint in gzip is read', async () => {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const { callback } = await openWithEndpoint(answer(200, headers, gzipSync(JSON.stringify(good))));
  expect((await visit(callback)).status).toBe(302);
});

describe('a login works with', threats(33, 34), () => {
  test.each<[string, object]>([
    ...['bearer', 'Bearer', 'BEARER', 'bEaReR'].map((token_type): [string, object] => [
      `the token_type ${token_type}`,
      { token_type },
    ]),
    ['no refresh_token', { refresh_token: undefined }],
    ['a refresh_token that is null', { refresh_token: null }],
    ['an access token that is no JWT', { access_token: 'opaque' }],
    ['fields that nobody knows', { scope: 'tm', __proto__x: 1 }],
    ['an access token of 16 KiB', { access_token: 'a'.repeat(16_384) }],
  ])('%s', async (_what, change) => {
    expect((await logInWith({ status: 200, body: { ...good, ...change } })).status).toBe(302);
    expect((await whoami()).authorized).toBe(true);
  });
});
