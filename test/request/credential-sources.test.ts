import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { FailedSource, fixedSource, NoGrantSource } from '../../src/session/credential-sources.js';

test('a request without a grant is not authorized', async () => {
  const source = new NoGrantSource();
  expect(source).toMatchObject({ grantId: undefined, authorized: false, organizationDomain: undefined });
  await expect(source.credential()).rejects.toMatchObject({
    name: 'NotAuthorizedError',
    message: 'No user has authorized this application for this request: the user has to log in first.',
  });
});

test('each call of a client that cannot work rejects with an error of its own', async () => {
  const error = new ConfigurationError('of the client', { option: 'grantId' });
  const source = new FailedSource(error);
  expect(source).toMatchObject({ grantId: undefined, authorized: true, organizationDomain: undefined });
  const rejected = await source.credential().catch((reason: unknown) => reason);
  expect(rejected).toEqual(error);
  expect(rejected).not.toBe(error);
});

test('a credential that is not stored has no grant id', () => {
  const credential = { accessToken: 'access', organizationDomain: 'acme', scope: ['read'] };
  const source = fixedSource(credential);
  expect(source).toMatchObject({ grantId: undefined, authorized: true, organizationDomain: 'acme', scope: ['read'] });
  expect(source.credential()).toBe(credential);
});
