import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../src/http/message.js';
import {
  type AnsweredRequest,
  grantedScope,
  readTokenResponse,
  responseFactsOf,
  scopeNames,
  type TokenSet,
} from '../../src/oauth/token-response.js';
import { threats } from '../support/threats.js';

const now = 1_700_000_000_000;
const secrets = () => ['the-client-secret', 'the-code'];
const good = { access_token: 'token', token_type: 'bearer', expires_in: 7200, refresh_token: 'refresh' };

function read(
  body: unknown,
  status = 200,
  headers: HttpResponse['headers'] = {},
  changes: Partial<AnsweredRequest> = {},
): TokenSet {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return readTokenResponse({ status, headers, body: Buffer.from(text) }, {}, { now, secrets, ...changes });
}

/** The error that an answer ends in. */
async function refusalOf(...args: Parameters<typeof read>): Promise<Error & { error?: string; retryAfter?: number }> {
  try {
    read(...args);
  } catch (error) {
    return error as Error;
  }
  throw new Error('The answer was taken');
}

test('takes registered errors as they are, also where a short secret is a part of the word', async () => {
  const refused = { status: 400, headers: {}, body: Buffer.from('{"error":"invalid_grant"}') };
  const request = { now: 0, secrets: () => ['r', 'grant'] };
  expect(() => readTokenResponse(refused, {}, request)).toThrow(expect.objectContaining({ error: 'invalid_grant' }));
});

test.each([
  ['a refresh token over 16 KiB', { ...good, refresh_token: 'r'.repeat(16_385) }],
  ['a refresh token that is a number', { ...good, refresh_token: 7 }],
  ['a refresh token beyond ASCII', { ...good, refresh_token: 'ä' }],
  ['an access token with DEL', { ...good, access_token: 'a\x7f' }],
  ['broken UTF-8', Buffer.concat([Buffer.from('{"access_token":"'), Buffer.from([0xff]), Buffer.from('"}')])],
  ['two objects', '{"access_token":"a"}{"access_token":"b"}'],
  ['a text', '"text"'],
  ['no access token', { ...good, access_token: undefined }],
  ['an empty access token', { ...good, access_token: '' }],
  ['an access token that is an object', { ...good, access_token: {} }],
  ['an access token with a space', { ...good, access_token: 'a b' }],
  ['an access token beyond ASCII', { ...good, access_token: 'ä' }],
  ['an access token over 16 KiB', { ...good, access_token: 'a'.repeat(16_385) }],
  ['a token type that is not a string', { ...good, token_type: ['bearer'] }],
  ['a token type with more to it', { ...good, token_type: 'bearer x' }],
  ['a prototype in the place of fields', '{"__proto__":{"access_token":"a","token_type":"bearer"}}'],
])('%s is not a token response', threats(30, 32), async (_what, body) => {
  expect(await refusalOf(body)).toMatchObject({ name: 'TokenResponseError', code: 'ERR_TOKEN_RESPONSE', status: 502 });
});

describe('a refusal', () => {
  test.each([['the-code'], ['x-the-client-secret-x'], ['<script>'], ['a b'], ['a\r\nb'], ['e'.repeat(65)], ['']])(
    'that has %j for an error is told as unrecognized',
    async (error) => {
      const refusal = await refusalOf({ error }, 400);
      expect(refusal.error).toBe('unrecognized_error');
      if (error !== '') expect(inspect(refusal)).not.toContain(error);
    },
  );

  test('whose description is not a string is reported without it', async () => {
    for (const error_description of [7, {}, ['x'], null]) {
      expect((await refusalOf({ error: 'invalid_grant', error_description }, 400)).message).toMatch(/invalid_grant\.$/);
    }
  });
});

test.each([408, 429, 500, 502, 503, 504, 599])(
  'status %d is a service that is not available, whatever the body says',
  async (status) => {
    const error = await refusalOf({ error: 'invalid_grant' }, status, { 'retry-after': '7' });
    expect(error).toMatchObject({ name: 'ServiceUnavailableError', status: 503, retryAfter: 7 });
  },
);

test('turns the date of Retry-After into whole seconds, as that header has them', async () => {
  const headers = { 'retry-after': new Date(now + 6_000).toUTCString() };
  const request = { now: now + 250, secrets };
  const read = () => readTokenResponse({ status: 503, headers, body: Buffer.alloc(0) }, {}, request);
  expect(read).toThrow(expect.objectContaining({ name: 'ServiceUnavailableError', retryAfter: 6 }));
});

test('takes tokens of 16 KiB, and any status of success', () => {
  const [accessToken, refreshToken] = ['a'.repeat(16_384), 'r'.repeat(16_384)];
  expect(read({ ...good, access_token: accessToken, refresh_token: refreshToken }, 299)).toMatchObject({
    accessToken,
    refreshToken,
  });
  expect(read({ ...good, token_type: undefined }, 201).accessToken).toBe('token');
});

test.for([
  [{ refresh_token_expires_in: 10 }, 10_000],
  [{ refresh_expires_in: '20' }, 20_000],
  [{ refresh_token_expires_in: 10, refresh_expires_in: 20 }, 10_000],
  [{ refresh_token_expires_in: 0 }, undefined],
  [{}, undefined],
] as const)('reads from %j that the refresh token lasts %s ms', ([fields, expected]) => {
  expect(read({ ...good, ...fields }).refreshTokenLifetimeMs).toBe(expected);
});

describe('an answer that is no token response', () => {
  const unusable = { access_token: 'a b', refresh_token: 'rotated' };

  test('gives the refresh token that came with it', async () => {
    expect(responseFactsOf(await refusalOf(unusable)).rotatedToken).toBe('rotated');
    const longest = 'r'.repeat(16_384);
    expect(responseFactsOf(await refusalOf({ ...unusable, refresh_token: longest })).rotatedToken).toBe(longest);
  });

  test.for([
    ['missing', undefined],
    ['a number', 7],
    ['empty', ''],
    ['too long', 'r'.repeat(16_385)],
    ['beyond ASCII', 'ä'],
  ])('gives no refresh token where that is %s', async ([, refresh_token]) => {
    expect(responseFactsOf(await refusalOf({ ...unusable, refresh_token })).rotatedToken).toBeUndefined();
  });

  test('says what was found and what was expected', async () => {
    const found: [body: unknown, status: number, text: string][] = [
      ['text', 200, 'a body that is not a JSON object'],
      [{}, 200, 'no access_token'],
      [{ ...good, access_token: '' }, 200, 'no access_token; expected a JSON token response. Nothing of it was kept.'],
      [{ access_token: 'a'.repeat(16_385) }, 200, 'an access_token over 16384 characters'],
      [{ access_token: 'a b' }, 200, 'characters that no header can carry'],
      [{ ...good, token_type: 'mac' }, 200, 'a token_type other than bearer'],
      [{ ...good, refresh_token: 7 }, 200, 'a refresh_token that is not a string'],
      [{ ...good, refresh_token: 'r'.repeat(16_385) }, 200, 'a refresh_token over 16384 characters'],
      ['', 404, 'status 404 without an OAuth error; expected a JSON token response. Nothing of it was kept.'],
      ['', 302, 'a redirect, which is never followed: check the option tokenPath'],
      ['', 300, 'a redirect'],
      ['', 399, 'a redirect'],
    ];
    for (const [body, status, text] of found) expect((await refusalOf(body, status)).message).toContain(text);
    expect((await refusalOf('', 400)).message).not.toContain('redirect');
  });
});

describe('the words of a refusal', () => {
  const wordsAt = async (body: unknown, status = 400) => responseFactsOf(await refusalOf(body, status)).refusal;
  const error = 'a_word';

  test.for([
    [{ error }, error],
    [{ code: error, status: 'later' }, error],
    [{ error: 7, status: error, category: 'later' }, error],
    [{ category: error }, error],
    // A text, no identifier.
    [{ error: 'Not authorized' }, 'Not authorized'],
    // One letter more may be a token.
    [{ error: 'e'.repeat(24) }, 'e'.repeat(24)],
    [{ error: 'bad_refresh_token' }, 'invalid_grant'],
    [{}, undefined],
  ])('are %j: %s', async ([body, expected]) => {
    expect((await wordsAt(body))?.error).toBe(expected);
  });

  test('hold the description, or the message, in 200 visible characters', async () => {
    const [description, status] = ['Why', 418];
    expect(await wordsAt({ error, error_description: description, message: 'x' }, status)).toEqual({
      ...{ error, description, status, body: { error, error_description: description, message: 'x' } },
    });
    expect((await wordsAt({ error, message: 'Why\nnot' }))?.description).toBe('Why not');
    expect((await wordsAt({ error, message: 7 }))?.description).toBeUndefined();
    expect((await wordsAt({ error, message: `${'word '.repeat(39)}and 12345 no more` }))?.description).toHaveLength(
      200,
    );
    expect((await wordsAt({ error, message: `  ${'word '.repeat(39)}` }))?.description).toMatch(/^word.*word$/);
  });

  test('are those of a success without a token', async () => {
    expect(await refusalOf({ error: 'bad_refresh_token' }, 200)).toMatchObject({ error: 'invalid_grant' });
    expect((await refusalOf({}, 200)).message).toContain('no access_token');
    expect(read({ ...good, error: 'warning' }).accessToken).toBe('token');
  });

  test('and the body hold nothing that was sent, however it is encoded, and end somewhere', async () => {
    const secret = 'a b+c/d"é&abcdefgh-ijklmnop';
    const form = new URLSearchParams([['', secret]]).toString().slice(1);
    const escaped = [encodeURIComponent(secret), form, 'a+b%2bc%2fd%22', JSON.stringify(secret).slice(1, -1)];
    const echoes = [secret, ...escaped, String.raw`a b+c\/d\"`, 'ijklmnop', 'abcdefgh'];
    const deep = `${'['.repeat(5_000)}"ijklmnop"${']'.repeat(5_000)}`;
    const answers = echoes.flatMap((echo) => [`<p>${echo}</p>`, { [echo]: [{ message: echo }], message: echo }]);
    for (const said of [...answers, deep]) {
      const error = await refusalOf(said, 400, {}, { secrets: () => [secret, secret.slice(0, 8), '\ud800'] });
      const shown = `${error.message} ${inspect(responseFactsOf(error).refusal, { depth: 99 })}`;
      expect(shown).toMatch(/^The token endpoint .*(\[…\]|\[\s*undefined\s*\])/s);
      for (const echo of echoes) expect(shown).not.toContain(echo);
    }
    expect(responseFactsOf(await refusalOf('x'.repeat(2_000), 400)).refusal?.body).toBe('x'.repeat(1_000));
  });

  test('of up to 64 characters are an identifier', async () => {
    const longest = 'abcd_'.repeat(13).slice(0, 64);
    expect((await refusalOf({ error: longest }, 400)).error).toBe(longest);
    const long = 'e'.repeat(25);
    expect((await refusalOf({ error: `x_${long}` }, 400)).error).toBe('unrecognized_error');
    expect((await refusalOf({ error: 'Its_own.word-2' }, 400)).error).toBe('Its_own.word-2');
    // An empty secret is part of every word.
    expect((await refusalOf({ error }, 400, {}, { secrets: () => [''] })).error).toBe(error);
  });
});

test('names of scopes are separated by white space or commas, and each counts once', () => {
  expect(scopeNames(' read,  write\n read,')).toEqual(['read', 'write']);
  expect(scopeNames(' , ')).toEqual([]);
});

const longestScope = 'a'.repeat(8_192);

test.for([
  ['read write', ['read', 'write']],
  [
    ['read write', 'admin'],
    ['read', 'write', 'admin'],
  ],
  ['', undefined],
  [[], undefined],
  [longestScope, [longestScope]],
  ["!#[]~'", ["!#[]~'"]],
  [`${longestScope}a`, undefined],
  [undefined, undefined],
  [['read', 7], undefined],
  [{ join: 1 }, undefined],
  // One name that RFC 6749 does not allow makes all of them doubtful.
  ['read "write"', undefined],
  ['read\\', undefined],
  ['é read', undefined],
] as const)('a response with the scope %j grants %j', ([value, names]) => {
  expect(grantedScope(value)).toEqual(names);
});
