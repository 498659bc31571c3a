import { readFileSync } from 'node:fs';
import type { StrategyOptions } from 'passport-oauth-app';
import type { EmulatorOptions } from 'passport-oauth-app/emulator';
import * as providers from 'passport-oauth-app/providers';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { fastForward } from '../support/fast-forward.js';
import { clock, loggedIn, open, projects, whoami, world } from '../support/one-world.js';
import { orSample } from '../support/sample.js';
import { grantKeys, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { acme } from './provider-guide/acme.js';

/** The option `userProfile` for a service with opaque tokens. */
const idFromApi: StrategyOptions['userProfile'] = async (client) =>
  (await client.get<{ data: { id: string } }>('/user')).data;

/** Characters that a naive encoding gets wrong. */
const CLIENT_ID = 'my:id';
const CLIENT_SECRET = 'a:b%c+d ü of the tests';

const applications = [
  { clientID: CLIENT_ID, clientSecret: CLIENT_SECRET, redirectUrls: ['http://127.0.0.1/callback'] },
];

/** Options that decide over the wire format; left out, they have their defaults. */
const WIRE = [
  ...['apiPath', 'tokenRequest', 'clientAuthentication', 'authorizationParams', 'scopeSeparator', 'headers', 'pkce'],
  ...['userProfile', 'endsGrant'],
] as const;

/** Returns a provider's options for the emulator: its endpoints are all on one host. */
function localOptions(provider: Partial<providers.Provider>): Partial<StrategyOptions> {
  const pathOf = (address: string | undefined) =>
    address && (address.startsWith('/') ? address : new URL(address).pathname);
  return {
    ...Object.fromEntries(WIRE.map((name) => [name, provider[name]])),
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    authorizationPath: pathOf(provider.authorizationPath),
    tokenPath: pathOf(provider.tokenPath),
    scope: provider.scope ?? ['project', 'tm'],
  };
}

interface Service {
  /** Default: the emulator's profile of that name. */
  readonly profile?: EmulatorOptions['profile'];
  /** Parameters of the authorization request beside the usual ones. */
  readonly params?: Record<string, unknown>;
  /** `null`: none is sent. Default: the two that are asked for, with a space between them. */
  readonly scope?: string | null;
  readonly tokenPath?: string;
  readonly api: string;
  readonly lifetimeS: number;
  /** Software that its users run: they know the API and its users. */
  readonly own?: Partial<StrategyOptions>;
  /** `profile.id` of the users 1 and 2. Default: these. */
  readonly ids?: readonly string[];
}

const opaqueForm = { tokenRequest: 'form', accessToken: 'opaque', scopeRequired: false, apiPath: '' } as const;

/** How each service is spoken to, by its documentation. */
const SERVICES: Record<string, Service> = {
  gitlab: { api: '/api/v4/projects', lifetimeS: 7200 },
  atlassian: { params: { audience: 'api.atlassian.com', prompt: 'consent' }, api: '/projects', lifetimeS: 3600 },
  linear: { scope: 'project,tm', api: '/projects', lifetimeS: 86_400 },
  hubspot: { tokenPath: '/oauth/v3/token', api: '/projects', lifetimeS: 1800 },
  zoom: { scope: null, api: '/v2/projects', lifetimeS: 3600 },
  box: { scope: null, tokenPath: '/oauth2/token', api: '/2.0/projects', lifetimeS: 3600 },
  miro: { scope: null, tokenPath: '/v1/oauth/token', api: '/v2/projects', lifetimeS: 3600 },
  calendly: {
    scope: null,
    api: '/projects',
    lifetimeS: 7200,
    ids: ['https://api.calendly.com/users/1', 'https://api.calendly.com/users/2'],
  },
  github: { scope: null, tokenPath: '/login/oauth/access_token', api: '/projects', lifetimeS: 28_800 },
  google: {
    params: { access_type: 'offline', prompt: 'consent' },
    tokenPath: '/token',
    api: '/projects',
    lifetimeS: 3600,
  },
  microsoft: { tokenPath: '/common/oauth2/v2.0/token', api: '/v1.0/projects', lifetimeS: 3600 },
  discord: { tokenPath: '/api/oauth2/token', api: '/api/v10/projects', lifetimeS: 604_800 },
  twitch: { tokenPath: '/oauth2/token', api: '/helix/projects', lifetimeS: 14_400 },
  spotify: { tokenPath: '/api/token', api: '/v1/projects', lifetimeS: 3600 },
  quickbooks: { tokenPath: '/oauth2/v1/tokens/bearer', api: '/v3/projects', lifetimeS: 3600 },
  doorkeeper: { profile: opaqueForm, api: '/projects', lifetimeS: 7200, own: { apiPath: '', userProfile: idFromApi } },
  djangoOauthToolkit: {
    profile: { ...opaqueForm, authorizationPath: '/o/authorize/', tokenPath: '/o/token/' },
    tokenPath: '/o/token/',
    api: '/projects',
    lifetimeS: 7200,
    own: { apiPath: '', userProfile: idFromApi },
  },
  keycloak: {
    profile: {
      tokenRequest: 'form',
      authorizationPath: '/realms/our%20staff/protocol/openid-connect/auth',
      tokenPath: '/realms/our%20staff/protocol/openid-connect/token',
    },
    tokenPath: '/realms/our%20staff/protocol/openid-connect/token',
    api: '/api/v2/projects',
    lifetimeS: 7200,
  },
};

const all = new Map(
  Object.entries<unknown>({
    ...providers,
    keycloak: providers.keycloak({ url: 'https://sso.example.com', realm: 'our staff' }),
  }),
);
const providerOf = (name: string) => all.get(name) as providers.Provider;

describe.each(Object.entries(SERVICES))(
  '%s',
  (name, {
    params = {},
    scope = 'project tm',
    tokenPath = '/oauth/token',
    api,
    lifetimeS,
    own,
    ids = ['1', '2'],
    ...row
  }) => {
    const { profile = name as EmulatorOptions['profile'] } = row;
    const provider = providerOf(name);

    test('gives each user an identity of its own', threats(89), async () => {
      const world = await open({
        service: { applications, profile },
        strategy: { ...localOptions(provider), ...own },
      });
      for (const user of ['1', '2']) expect((await world.logIn(new Browser(), user)).status).toBe(302);
      const users = stored(world).flatMap(
        ([, { passport }]) => (passport as { user?: object } | undefined)?.user ?? [],
      );
      expect(users).toEqual(ids.map((id) => expect.objectContaining({ id })));
    });

    test('logs in, calls, expires and refreshes in its own format, byte for byte, and ends with its grant', async () => {
      await loggedIn({
        service: { applications, profile },
        strategy: { ...localOptions(provider), ...own },
      });
      world.service.requests.length = 0;
      const location = (await fetch(`${world.url}/login`, { redirect: 'manual' })).headers.get('location') ?? '';
      const { client_id, redirect_uri, response_type, state, ...others } = Object.fromEntries(
        new URL(location).searchParams,
      );
      expect({ client_id, redirect_uri, response_type }).toEqual({
        client_id: CLIENT_ID,
        redirect_uri: `${world.url}/callback`,
        response_type: 'code',
      });
      expect(state).toMatch(/^.{40,}$/);
      const challenge = { code_challenge_method: 'S256', code_challenge: expect.stringMatching(/^[\w-]{43}$/) };
      expect(others).toEqual({ ...(scope === null ? {} : { scope }), ...params, ...(provider.pkce ? challenge : {}) });

      expect((await projects()).status).toBe(200);
      expect(world.service.requests.at(-1)).toMatchObject({ method: 'GET', path: api });
      world.service.requests.length = 0;
      clock.advance(lifetimeS + 1);
      expect((await projects()).status).toBe(200);
      const tokenRequests = () => world.service.requests.filter(({ path }) => path === tokenPath);
      const [request] = tokenRequests();
      const isBasic = provider.clientAuthentication === 'basic';
      const credentials = isBasic ? '' : 'client_id=my%3Aid&client_secret=a%3Ab%25c%2Bd+%C3%BC+of+the+tests&';
      if (provider.tokenRequest === 'form') {
        expect(request?.headers['content-type']).toBe('application/x-www-form-urlencoded');
        expect(request?.body).toMatch(
          new RegExp(`^grant_type=refresh_token&${credentials.replaceAll('+', '\\+')}refresh_token=[^&]+$`),
        );
      } else {
        expect(request?.headers['content-type']).toBe('application/json');
        expect(Object.keys(request?.body as object)).toEqual([
          'grant_type',
          'client_id',
          'client_secret',
          'refresh_token',
        ]);
      }
      const basic = `Basic ${Buffer.from('my%3Aid:a%3Ab%25c%2Bd+%C3%BC+of+the+tests').toString('base64')}`;
      expect(request?.headers.authorization).toBe(isBasic ? basic : undefined);

      world.service.expireAccessTokens();
      expect((await projects()).status).toBe(200);
      world.service.revoke('1');
      clock.advance(lifetimeS + 1);
      await fastForward(projects, () => tokenRequests().length === 3);
      expect((await whoami()).authorized).toBe(false);
      expect(grantKeys(world)).toEqual([]);
    });
  },
);

describe('a day of a service', () => {
  const hours = orSample(24, 6);

  test.for<[string, EmulatorOptions['profile']]>([
    ['that repeats its refresh token', { rotation: 'same', accessTokenLifetime: 1800 }],
    ['that leaves its refresh token out', { rotation: 'omit', accessTokenLifetime: 1800 }],
    ['whose answers have no expires_in and no JWT', { expiresIn: false, accessToken: 'opaque' }],
  ])('%s: every request succeeds, and no refresh follows another', async ([, profile]) => {
    await loggedIn({ service: { profile }, strategy: { userProfile: idFromApi } });
    for (let minute = 0; minute < hours * 60; minute += 20) {
      clock.advance(1200);
      expect((await projects()).status).toBe(200);
    }
    expect(world.tokenRequests().length).toBeGreaterThanOrEqual((hours * 20) / 24);
    expect(world.tokenRequests().length).toBeLessThanOrEqual((hours * 60) / 24);
  });
});

test('a provider of one’s own is an object, which may read the organization from the token answer', async () => {
  const profile = {
    ...opaqueForm,
    authorizationPath: '/authorize',
    apiPath: '/rest',
    clientAuthentication: 'basic',
  } as const;
  await loggedIn({
    service: { applications, profile },
    // The emulator's answers have no team.
    strategy: {
      ...localOptions(acme),
      userProfile: async () => ({ id: '1' }),
      organizationDomain: (claims, answer) => acme.organizationDomain(claims, { ...answer, team: 'Acme' }),
    },
  });
  const baseUrl = expect.stringMatching(/^http:\/\/acme\.api\.localhost:\d+\/rest$/);
  expect(await whoami()).toMatchObject({ authorized: true, organizationDomain: 'acme', baseUrl });
});

test('parameters of the authorization request may depend on the request, and never replace the package’s own', async () => {
  const world = await open({
    strategy: {
      authorizationParams: (req) => (req.url?.includes('evil') ? { state: 'x' } : { login_hint: 'ada', prompt: 'a b' }),
    },
  });
  const response = await fetch(`${world.url}/login`, { redirect: 'manual' });
  expect(response.headers.get('location')).toMatch(/&login_hint=ada&prompt=a\+b$/);
  await fetch(`${world.url}/login?evil`, { redirect: 'manual' });
  expect(world.errors[0]).toMatchObject({ name: 'ConfigurationError', option: 'authorizationParams' });
});

test('docs/providers.md shows this very provider', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const code = read('./provider-guide/acme.ts');
  expect(read('../../docs/providers.md')).toContain(`\`\`\`ts\n// acme.ts\n${code}\`\`\``);
});
