import { gzipSync } from 'node:zlib';
import type { StrategyOptions } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../support/event-log.js';
import { answer, json, startFaultyServer } from '../support/faulty-server.js';
import { clock, loggedIn, openAtCallback, projects, visit, whoami, world } from '../support/one-world.js';
import { openWithEndpoint } from '../support/open-with-endpoint.js';
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

test('the code of a callback reaches the token endpoint whole, with a question mark too', async () => {
  const { server, callback } = await openWithEndpoint(json(good), {}, 'a?b');
  await visit(callback);
  expect(JSON.parse(String(server.requests[0]?.body))).toMatchObject({ code: 'a?b' });
});

describe('a login works with', threats(33, 34), () => {
  test.each<[string, object]>([
    ...['bearer', 'Bearer', 'BEARER', 'bEaReR'].map((token_type): [string, object] => [
      `the token_type ${token_type}`,
      { token_type },
    ]),
    ['no refresh_token', { refresh_token: undefined }],
    ['a refresh_token that is null', { refresh_token: null }],
    ['a refresh_token that is empty', { refresh_token: '' }],
    ['an access token that is no JWT', { access_token: 'opaque' }],
    ['fields that nobody knows', { scope: 'tm', __proto__x: 1 }],
    ['an access token of 16 KiB', { access_token: 'a'.repeat(16_384) }],
    ['an ID token of 200 KB', { id_token: 'i'.repeat(200_000) }],
  ])('%s', async (_what, change) => {
    expect((await logInWith({ status: 200, body: { ...good, ...change } })).status).toBe(302);
    expect((await whoami()).authorized).toBe(true);
  });
});

test('a byte that is not UTF-8 spoils its own field alone', threats(115), async () => {
  const [before, after] = JSON.stringify({ ...good, name: '?' }).split('?') as [string, string];
  const body = Buffer.concat([Buffer.from(before), Buffer.from([0xe9]), Buffer.from(after)]);
  const { callback } = await openWithEndpoint(answer(200, {}, body));
  expect((await visit(callback)).status).toBe(302);
});

describe('a login without a refresh token', threats(108), () => {
  const DAY_S = 86_400;

  /** Logs in at a service that issues no refresh token, and returns a visit of an API resource. */
  async function loggedInWith(fields: object, strategy: Partial<StrategyOptions> = {}) {
    const { access_token, token_type } = good;
    const service = await startFaultyServer();
    onTestFinished(() => service.close());
    service.next(json({ access_token, token_type, ...fields }));
    service.always(json([]));
    const endpoints = { tokenPath: `${service.origin}/token`, baseUrl: service.origin };
    await loggedIn({ strategy: { ...endpoints, ...strategy } });
    return { service, events: listen('grant-lost') };
  }

  test.for<[what: string, fields: object, lastsS: number, strategy?: Partial<StrategyOptions>]>([
    ['60 days of expires_in', { expires_in: 60 * DAY_S }, 60 * DAY_S],
    ['a minute of expires_in, to its last second', { expires_in: 60 }, 60],
    ['its exp', { access_token: jwt({ sub: '1', iat: 1_000, exp: 1_000 + 90 * DAY_S }) }, 90 * DAY_S],
    ['the option accessTokenLifetime', {}, 3 * DAY_S, { accessTokenLifetime: 3 * DAY_S }],
    ['no end, where nothing is stated', {}, Infinity],
    ['no end, with expires_in 0', { expires_in: 0 }, Infinity],
    ['no end, with expires_in -1', { expires_in: '-1' }, Infinity],
    ['no end, with ten years', { expires_in: 315_360_000 }, Infinity],
  ])('has %s', async ([, fields, lastsS, strategy]) => {
    const { service, events } = await loggedInWith(fields, strategy);
    clock.advance(Math.min(lastsS - 1, 30 * 365 * DAY_S));
    expect((await projects()).status).toBe(200);
    if (lastsS === Infinity) return;
    clock.advance(1);
    expect((await projects()).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
    expect(events.values('grant-lost', 'reason')).toEqual(['expired']);
    expect(service.requests.map(({ target }) => target)).toEqual(['/token', '/api/v2/projects']);
  });

  test.for<[challenge: string | undefined, ends: boolean]>([
    [undefined, true],
    ['Bearer realm="api", error="invalid_token"', true],
    ['Bearer error="insufficient_scope", scope="tm"', false],
    ['Bearer error="invalid_request"', false],
  ])('that the API answers with 401 and the challenge %s: it ends: %s', async ([challenge, ends]) => {
    const { service, events } = await loggedInWith({});
    service.always(json({}, 401, challenge === undefined ? {} : { 'www-authenticate': challenge }));
    expect((await projects()).json()).toMatchObject({ name: ends ? 'NotAuthorizedError' : 'ApiError' });
    expect(events.values('grant-lost', 'reason')).toEqual(ends ? ['refused'] : []);
    expect((await projects()).status).toBe(ends ? 302 : 401);
    expect(service.requests).toHaveLength(ends ? 2 : 3);
  });
});
