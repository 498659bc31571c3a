import * as providers from 'passport-oauth-app/providers';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { StrategyOptions } from '../../src/options.js';
import { resolveOptions } from '../../src/options.js';
import * as broken from '../support/broken-answers.js';
import { withoutPauses } from '../support/fast-forward.js';
import * as faulty from '../support/faulty-server.js';
import { open, projects, visit, whoami, world } from '../support/one-world.js';
import { grantKeys } from '../support/session-entries.js';
import { TestClock } from '../support/test-clock.js';
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
  ['HTML of a proxy', broken.html(403), 403, 'GET /api/v2/projects: status 403'],
  ['JSON in another shape', faulty.json({ message: 'Gateway' }, 403), 403, 'GET /api/v2/projects: status 403'],
  [
    'invalid JSON, with a success',
    broken.badJson('<Gateway>'),
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

const JWT = `e30.${Buffer.from('{"sub":"xero-user"}').toString('base64url')}.x`;
const base = { token_type: 'bearer', access_token: 'opaque', refresh_token: 'rt-1' };

/** A service as its documentation describes it. */
interface Service {
  /** What the authorization request has beside the usual. */
  readonly query: object;
  readonly token: string;
  /** The answer to a code. */
  readonly tokens: object;
  /** Where the profile is, and what it is; `undefined` where the token response names the user. */
  readonly profile?: readonly [target: string, body: object];
  readonly id: string;
  /** How long an access token lives, in seconds. */
  readonly lifetimeS: number;
  /** How a dead refresh token is refused. */
  readonly refusal: readonly [status: number, body: object];
  /** A refusal for another reason. */
  readonly other?: object;
}

const SERVICES: Record<string, Service> = {
  linkedin: {
    query: { scope: 'openid profile' },
    token: '/oauth/v2/accessToken',
    tokens: { ...base, expires_in: 5_184_000, refresh_token_expires_in: 31_536_000, scope: 'openid,profile' },
    profile: ['/v2/userinfo', { sub: 'linkedin-user', name: 'Ada' }],
    id: 'linkedin-user',
    lifetimeS: 86_400,
    refusal: [
      400,
      {
        error: 'invalid_request',
        error_description: 'The provided authorization grant or refresh token is invalid, expired or revoked.',
      },
    ],
    other: { error: 'invalid_request', error_description: 'A required parameter "grant_type" is missing' },
  },
  fitbit: {
    query: { scope: 'openid profile', code_challenge_method: 'S256', code_challenge: expect.anything() },
    token: '/oauth2/token',
    tokens: { ...base, expires_in: 28_800, scope: 'activity profile', user_id: 'GGNJL9' },
    id: 'GGNJL9',
    lifetimeS: 28_800,
    refusal: [
      400,
      { errors: [{ errorType: 'invalid_grant', message: 'Refresh token invalid: refresh' }], success: false },
    ],
    other: { errors: [{ errorType: 'invalid_client', message: 'Invalid authorization header' }], success: false },
  },
  strava: {
    query: { scope: 'openid,profile' },
    token: '/oauth/token',
    tokens: {
      ...base,
      expires_at: 1,
      expires_in: 21_600,
      athlete: { id: 6_958_432, firstname: 'Ada', lastname: 'L.' },
    },
    id: '6958432',
    lifetimeS: 21_600,
    refusal: [
      400,
      { message: 'Bad Request', errors: [{ resource: 'RefreshToken', field: 'refresh_token', code: 'invalid' }] },
    ],
    other: { message: 'Bad Request', errors: [{ resource: 'Application', field: 'client_id', code: 'invalid' }] },
  },
  salesforce: {
    query: { scope: 'openid profile', code_challenge_method: 'S256', code_challenge: expect.anything() },
    token: '/services/oauth2/token',
    tokens: {
      ...base,
      id: 'https://login.salesforce.com/id/00D/005',
      instance_url: 'https://acme.my.salesforce.com',
      issued_at: '1',
    },
    id: 'https://login.salesforce.com/id/00D/005',
    lifetimeS: 7_200,
    refusal: [400, { error: 'invalid_grant', error_description: 'expired access/refresh token' }],
    other: { error: 'inactive_org', error_description: 'organization is locked' },
  },
  xero: {
    query: { scope: 'openid profile', code_challenge_method: 'S256', code_challenge: expect.anything() },
    token: '/connect/token',
    tokens: { ...base, access_token: JWT, expires_in: 1_800, scope: 'openid profile' },
    id: 'xero-user',
    lifetimeS: 1_800,
    refusal: [400, { error: 'invalid_grant' }],
    other: { error: 'unsupported_grant_type' },
  },
  hubspot: {
    query: { scope: 'openid profile', code_challenge_method: 'S256', code_challenge: expect.anything() },
    token: '/oauth/v3/token',
    tokens: { ...base, expires_in: 1_800, hub_id: 1, user_id: 7 },
    id: '7',
    lifetimeS: 1_800,
    refusal: [400, { status: 'BAD_REFRESH_TOKEN', message: 'missing or invalid refresh token' }],
    other: { status: 'BAD_CLIENT_ID', message: 'missing or unknown client id' },
  },
};

test.for(Object.entries(SERVICES))('%s logs in, refreshes and refuses as it documents', async ([name, service]) => {
  const provider: Partial<providers.Provider> = Reflect.get(providers, name);
  const pathOf = (address = '') => (address.startsWith('/') ? address : new URL(address).pathname);
  const clock = new TestClock();
  await open({
    strategy: {
      ...provider,
      ...{ authUrl: server.origin, baseUrl: server.origin, scope: ['openid', 'profile'], clock: clock.now },
      ...{ authorizationPath: pathOf(provider.authorizationPath ?? '/oauth/authorize') },
      ...{ tokenPath: pathOf(provider.tokenPath ?? '/oauth/token'), revocationPath: undefined },
    },
  });
  const login = new URL((await visit('/login')).headers.get('location') ?? '');
  expect(login.pathname).toBe(pathOf(provider.authorizationPath ?? '/oauth/authorize'));
  const { client_id, redirect_uri, response_type, state, ...query } = Object.fromEntries(login.searchParams);
  expect(query).toEqual(service.query);

  server.next(faulty.json(service.tokens));
  if (service.profile) server.next(faulty.json(service.profile[1]));
  expect((await visit(`/callback?code=c&state=${state}`)).status).toBe(302);
  const [exchange] = server.requests;
  expect(exchange?.target).toBe(service.token);
  expect(exchange?.headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect('authorization' in (exchange?.headers ?? {})).toBe(provider.clientAuthentication === 'basic');
  expect(exchange?.body.toString().includes('code_verifier=')).toBe(provider.pkce === true);
  expect(server.requests[1]?.target).toBe(service.profile?.[0]);
  expect(await whoami()).toMatchObject({ user: { id: service.id }, authorized: true });

  const sent = server.requests.length;
  clock.advance(service.lifetimeS + 1);
  server.next(faulty.json(service.tokens));
  server.next(faulty.json([]));
  expect((await projects()).status).toBe(200);
  expect(server.requests[sent]?.body.toString()).toContain('grant_type=refresh_token');

  const script = () => visit('/projects', { headers: { accept: 'application/json' } });
  clock.advance(service.lifetimeS + 1);
  server.next(faulty.json(service.other, 400));
  expect((await script()).json()).toMatchObject({ name: 'TokenError' });
  clock.advance(31);
  server.next(faulty.json(service.refusal[1], service.refusal[0]));
  expect((await withoutPauses(script, server.origin)).json()).toMatchObject({ name: 'NotAuthorizedError' });
  expect(grantKeys(world)).toEqual([]);
});

test.for<[string, string[], string[]]>([
  ['google', ['openid', 'https://www.googleapis.com/auth/userinfo.email'], ['openid', 'email']],
  ['microsoft', ['https://graph.microsoft.com/User.Read', 'openid'], ['User.Read', 'openid', 'offline_access']],
  [
    'github',
    ['repo', 'admin:org', 'write:packages', 'codespace'],
    ['public_repo', 'read:org', 'read:packages', 'codespace:secrets'],
  ],
])('%s grants %j, which an application knows as %j', ([name, names, known]) => {
  const { grantedScopes }: Partial<providers.Provider> = Reflect.get(providers, name);
  expect(grantedScopes?.(names)).toEqual(expect.arrayContaining([...names, ...known]));
});
