import fc from 'fast-check';
import { expect, test } from 'vitest';
import { renewableLifetime } from '../../src/oauth/token-response.js';
import { threats } from '../support/threats.js';

const now = 1_700_000_000_000;
const nowS = now / 1000;

const tokenLifetime = (expiresIn: unknown, claims: object, accessTokenLifetime?: number) =>
  renewableLifetime(expiresIn, { ...claims }, now, accessTokenLifetime);

test.each([
  [7200, 7_200_000],
  ['7200', 7_200_000],
  [' 7200 ', 7_200_000],
  ['7200.5', 7_200_500],
  ['7200.125000', 7_200_125],
  [30, 30_000],
  [1, 1000],
  [86_400, 86_400_000],
  [86_401, 86_400_000],
  [315_360_000, 86_400_000],
])('expires_in %j counts', threats(34), (expiresIn, lifetime) => {
  expect(tokenLifetime(expiresIn, { exp: nowS + 5000 })).toBe(lifetime);
});

const senseless = [
  0,
  -1,
  Number.NaN,
  1e300,
  Number.POSITIVE_INFINITY,
  1e-9,
  0.5,
  315_360_001,
  'soon',
  ...['', '1e3', '0x10', '-5', null, undefined, {}],
  [7200],
  true,
];
test.each(senseless)(
  'expires_in %j gives way to exp, to the option accessTokenLifetime, and to an hour',
  threats(34),
  (expiresIn) => {
    expect(tokenLifetime(expiresIn, { exp: nowS + 1800 })).toBe(1_800_000);
    expect(tokenLifetime(expiresIn, {}, 900)).toBe(900_000);
    expect(tokenLifetime(expiresIn, {})).toBe(3_600_000);
  },
);

test.each([
  ['against iat, which leaves the clock out of it', { iat: 1000, exp: 1000 + 900 }, 900_000],
  ['no shorter than a minute', { iat: 1000, exp: 1001 }, 60_000],
  ['no longer than a day', { exp: nowS + 1e6 }, 86_400_000],
  ['not if it is over', { exp: nowS - 5 }, 3_600_000],
  ['not if it lies before iat', { iat: 2000, exp: 1000 }, 3_600_000],
  ['not if it is no number', { exp: '9999999999' }, 3_600_000],
  ['not in milliseconds', { exp: now + 3_600_000 }, 3_600_000],
])('exp counts %s', threats(34), (_how, claims, lifetime) => {
  expect(tokenLifetime(undefined, claims)).toBe(lifetime);
});

test('is limited to a second at least and a day at most', threats(34), () => {
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (expiresIn, exp, iat) => {
      const lifetime = tokenLifetime(expiresIn, { exp, iat });
      expect(lifetime).toBeGreaterThanOrEqual(1000);
      expect(lifetime).toBeLessThanOrEqual(86_400_000);
    }),
  );
});
