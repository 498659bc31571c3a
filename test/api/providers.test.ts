import * as providers from 'passport-oauth-app/providers';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { StrategyOptions } from '../../src/options.js';
import { resolveOptions } from '../../src/options.js';
import * as faulty from '../support/faulty-server.js';
import { startApiForEachTest } from './fixture.js';

const application = {
  clientID: 'id',
  clientSecret: 'secret',
  callbackURL: 'http://localhost:3000/callback',
  scope: 'project',
};

const services: readonly [string, providers.Provider][] = Object.entries(providers).flatMap(([name, provider]) =>
  typeof provider === 'function' ? [] : [[name, provider]],
);

describe.each(services)('%s', (_name, provider) => {
  test('is plain frozen options that a strategy takes', () => {
    expect(Object.isFrozen(provider)).toBe(true);
    expectTypeOf({ ...provider, ...application }).toExtend<StrategyOptions>();
    expect(() => resolveOptions({ ...provider, ...application })).not.toThrow();
  });
});

describe("crowdin's organization", () => {
  test.each([
    [{ domain: 'acme' }, 'acme'],
    [{ organization_domain: 'acme' }, 'acme'],
    [{ domain: null }, undefined],
    [{}, undefined],
  ])('of %j is %j', (claims, domain) => {
    expect(providers.crowdin.organizationDomain(claims)).toBe(domain);
  });
});

describe("crowdin's profile", () => {
  const api = startApiForEachTest();

  test.each([
    [
      { data: { id: 7, username: 'ada', email: 'ada@example.com', fullName: 'Ada L.', avatarUrl: 'https://x/y.png' } },
      {
        id: '7',
        username: 'ada',
        displayName: 'Ada L.',
        emails: [{ value: 'ada@example.com' }],
        photos: [{ value: 'https://x/y.png' }],
      },
    ],
    [
      { data: { id: 7, username: 'ada', firstName: 'Ada', lastName: 'L.' } },
      { id: '7', username: 'ada', displayName: 'Ada L.' },
    ],
    [
      { data: { id: 7, username: 'ada', firstName: '', lastName: null } },
      { id: '7', username: 'ada', displayName: 'ada' },
    ],
    [{ data: null }, {}],
    [[], {}],
  ])('of %j', async (body, profile) => {
    api.server.always(faulty.json(body));
    expect(await providers.crowdin.userProfile(api.fixture.client)).toEqual(profile);
    expect(api.server.requests[0]?.target).toBe('/api/v2/user');
  });
});

test('a provider of one’s own is an object of this type', () => {
  const own = {
    authUrl: 'https://auth.example.com',
    baseUrl: 'https://api.example.com',
    pkce: true,
  } satisfies providers.Provider;
  expect(() => resolveOptions({ ...own, ...application })).not.toThrow();
});
