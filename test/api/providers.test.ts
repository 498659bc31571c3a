import * as providers from 'passport-oauth-app/providers';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { StrategyOptions } from '../../src/options.js';
import { resolveOptions } from '../../src/options.js';
import * as faulty from '../support/faulty-server.js';
import { client, server, startApiForEachTest } from './fixture.js';

startApiForEachTest();

const application = {
  clientID: 'id',
  clientSecret: 'secret',
  callbackURL: 'http://localhost:3000/callback',
  scope: 'project',
};
const addresses = { authUrl: 'https://auth.example.net', baseUrl: 'https://api.example.net' };

const services: readonly [string, providers.SelfHostedProvider][] = Object.entries(providers).flatMap(
  ([name, provider]) => (typeof provider === 'function' ? [] : [[name, provider]]),
);

describe.each(services)('%s', (_name, provider) => {
  test('is plain frozen options that a strategy takes', () => {
    expect(Object.isFrozen(provider)).toBe(true);
    expectTypeOf({ ...addresses, ...provider, ...application }).toExtend<StrategyOptions>();
    expect(() => resolveOptions({ ...addresses, ...provider, ...application })).not.toThrow();
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
    server.always(faulty.json(body));
    expect(await providers.crowdin.userProfile(client)).toEqual(profile);
    expect(server.requests[0]?.target).toBe('/api/v2/user');
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

test.each<[string, faulty.Behaviour, number, string]>([
  ['HTML of a proxy', faulty.html(403), 403, 'GET /api/v2/projects: status 403'],
  ['JSON in another shape', faulty.json({ message: 'Gateway' }, 403), 403, 'GET /api/v2/projects: status 403'],
  [
    'invalid JSON, with a success',
    faulty.badJson('<Gateway>'),
    502,
    'GET /api/v2/projects: the body is not valid JSON',
  ],
])(
  'crowdinHttpClient gives the SDK the status of %s, and nothing of its text',
  async (_what, answer, code, message) => {
    server.next(answer);
    const error: unknown = await providers
      .crowdinHttpClient(client)
      .get('https://api.crowdin.com/api/v2/projects')
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ message, response: { data: { error: { code, message } } } });
  },
);

describe('a service with words of its own', () => {
  const status = 400;
  const own = { twitch: providers.twitch, microsoft: providers.microsoft };
  test.each([
    ['twitch', { error: 'Bad Request', description: 'Invalid refresh token', status }, true],
    ['twitch', { error: undefined, description: 'Invalid refresh token', status }, true],
    ['twitch', { error: 'Bad Request', description: 'missing client id', status }, false],
    ['microsoft', { error: 'interaction_required', description: undefined, status }, true],
    ['microsoft', { error: 'invalid_request', description: undefined, status }, false],
  ] as const)('%s: %j ends the grant: %s', (name, refusal, ends) => {
    expect(own[name].endsGrant?.({ ...refusal, body: {} })).toBe(ends);
  });
});

test.each([undefined, '', 'no-jwt', 'a.!.c', 'a.bnVsbA.c', 'a.e30.c'])(
  'quickbooks: the ID token %j, which names no user, fails the login',
  async (idToken) => {
    await expect(providers.quickbooks.userProfile(client, { id_token: idToken })).rejects.toThrow(/names no user/);
  },
);
