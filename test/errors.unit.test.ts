import { describe, expect, test } from 'vitest';
import {
  AuthorizationError,
  ConfigurationError,
  cloneError,
  NotAuthorizedError,
  OAuthAppError,
  ServiceUnavailableError,
  TokenError,
  TokenResponseError,
  TokenStoreError,
} from '../src/errors.js';

const cause = new Error('underneath');
const errors: readonly [OAuthAppError, string, string, number][] = [
  [new ConfigurationError('m', { option: 'o', cause }), 'ConfigurationError', 'ERR_CONFIGURATION', 500],
  [new AuthorizationError('m', { error: 'server_error' }), 'AuthorizationError', 'ERR_AUTHORIZATION', 502],
  [new TokenError('m', { error: 'invalid_grant' }), 'TokenError', 'ERR_TOKEN_REFUSED', 502],
  [new TokenResponseError('m', { cause }), 'TokenResponseError', 'ERR_TOKEN_RESPONSE', 502],
  [
    new ServiceUnavailableError('m', { retryAfter: 7, cause }),
    'ServiceUnavailableError',
    'ERR_SERVICE_UNAVAILABLE',
    503,
  ],
  [new NotAuthorizedError('m', { cause }), 'NotAuthorizedError', 'ERR_NOT_AUTHORIZED', 401],
  [new TokenStoreError('m', { cause }), 'TokenStoreError', 'ERR_TOKEN_STORE', 503],
];

describe.each(errors.map((entry) => [entry[1], ...entry] as const))('%s', (_title, error, name, code, status) => {
  test('is an OAuthAppError with name, code and status', () => {
    expect(error).toBeInstanceOf(OAuthAppError);
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.code, error.status, error.message]).toEqual([name, code, status, 'm']);
    expect(String(error)).toBe(`${name}: m`);
    expect(error.stack).toContain('errors.unit.test.ts');
  });

  test('is cloneError as another object of the same kind', () => {
    const again = cloneError(error) as OAuthAppError;
    expect(again).not.toBe(error);
    expect(again).toEqual(error);
    expect(again.constructor).toBe(error.constructor);
    expect(again.cause).toBe(error.cause);
  });
});

test('seconds until a new try are whole ones, so that none comes too early', () => {
  const errors = [0, 0.2, 7, 7.5].map((retryAfter) => new ServiceUnavailableError('m', { retryAfter }));
  expect(errors.map(({ retryAfter }) => retryAfter)).toEqual([0, 1, 7, 8]);
  expect(new ServiceUnavailableError('m').retryAfter).toBe(undefined);
});

test('errors of others are handed on as they are', () => {
  expect(cloneError(cause)).toBe(cause);
  expect(cloneError(undefined)).toBeUndefined();
});
