import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { claimedDomain } from '../../src/oauth/claims.js';
import { readImportedTokens } from '../../src/oauth/imported-tokens.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const CENTURY_MS = 3_153_600_000_000;

const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
const read = (tokens: unknown, accessTokenLifetime?: number) =>
  readImportedTokens(tokens, NOW, { organizationDomain: claimedDomain, accessTokenLifetime });

test('reads what the access token says', () => {
  const claims = { sub: 7, domain: 'ACME', exp: NOW / 1000 + 60 };
  const accessToken = jwt(claims);
  expect(read({ accessToken, refreshToken: 'refresh' })).toEqual({
    accessToken,
    refreshToken: 'refresh',
    lifetimeMs: 60_000,
    renewableLifetimeMs: 60_000,
    refreshTokenLifetimeMs: undefined,
    scope: undefined,
    claims,
    subject: '7',
    organizationDomain: 'acme',
    params: {},
  });
});

test.for<[what: string, tokens: object, lifetimeMs: number]>([
  ['a refresh token alone: the first request refreshes', { refreshToken: 'r' }, 0],
  ['a refresh token alone has no end of an access token', { refreshToken: 'r', expiresAt: NOW + 9 }, 0],
  ['nothing is known of the end', { accessToken: 'a', refreshToken: 'r' }, 0],
  ['nothing is known, and no refresh is possible', { accessToken: 'a' }, CENTURY_MS],
  ['a number', { accessToken: 'a', expiresAt: NOW + 9 }, 9],
  ['a date', { accessToken: 'a', expiresAt: new Date(NOW + 8) }, 8],
  ['a date that has passed', { accessToken: 'a', expiresAt: NOW - 1 }, 0],
  ['the least number', { accessToken: 'a', expiresAt: 1_000_000_000_000 }, 0],
  ['a claim', { accessToken: jwt({ exp: NOW / 1000 + 7 }), refreshToken: 'r' }, 7_000],
  ['a claim without a refresh token', { accessToken: jwt({ exp: NOW / 1000 + 7 }) }, 7_000],
  ['what is said goes before the claim', { accessToken: jwt({ exp: NOW / 1000 + 7 }), expiresAt: NOW + 6 }, 6],
  ['a claim that is no number', { accessToken: jwt({ exp: 'soon' }), refreshToken: 'r' }, 0],
  ['a claim beyond all time', { accessToken: jwt({ exp: 1e300 }) }, Number.MAX_SAFE_INTEGER - NOW],
  ['the longest tokens', { accessToken: 'a'.repeat(16_384), refreshToken: 'r'.repeat(16_384) }, 0],
  ['members that are undefined', { accessToken: 'a', refreshToken: undefined, expiresAt: undefined }, CENTURY_MS],
])('how long it lasts by %s', ([, tokens, lifetimeMs]) => {
  expect(read(tokens).lifetimeMs).toBe(lifetimeMs);
  // It counts where nothing else says, and no refresh is possible.
  expect(read(tokens, 60).lifetimeMs).toBe(lifetimeMs === CENTURY_MS ? 60_000 : lifetimeMs);
});

test('without an access token has one that is never sent, and says nothing', () => {
  const { accessToken, claims, subject } = read({ refreshToken: 'r' });
  expect({ accessToken, claims, subject }).toEqual({
    accessToken: 'imported-without-access-token',
    claims: {},
    subject: undefined,
  });
});

test.for<[tokens: unknown, option: string, message: RegExp]>([
  [undefined, 'tokens', /^tokens: expected/],
  [{}, 'refreshToken', /^refreshToken: expected a refresh token, an access token, or both, got neither$/],
  [{ accessToken: 'a', expiresAt: NOW / 1000 }, 'expiresAt', /^expiresAt: .*milliseconds since 1970/],
  [{ accessToken: 'a', expiresAt: 999_999_999_999 }, 'expiresAt', /^expiresAt: /],
  [{ accessToken: 'a', expiresAt: new Date(Number.NaN) }, 'expiresAt', /^expiresAt: /],
  [{ accessToken: 'a', expiresAt: '2026-01-01' }, 'expiresAt', /^expiresAt: /],
  [{ accessToken: 7 }, 'accessToken', /^accessToken: /],
  [{ accessToken: 'a b' }, 'accessToken', /^accessToken: expected visible ASCII characters, without line breaks/],
  [{ refreshToken: 'r\n' }, 'refreshToken', /^refreshToken: expected visible ASCII characters, without line breaks/],
  [{ refreshToken: 'r'.repeat(16_385) }, 'refreshToken', /^refreshToken: expected at most 16384 characters, got 16385/],
  [{ accesToken: 'a' }, 'accesToken', /importGrant\(grantId, tokens\)/],
])('%j is wrong at %s', ([tokens, option, message]) => {
  try {
    read(tokens);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({ option, message: expect.stringMatching(message) });
  }
});
