import type { StrategyOptions } from 'passport-oauth-app';
import { EnvHttpProxyAgent } from 'undici';
import { describe, expect, test } from 'vitest';
import { browser, loggedIn, logIn, logOut, open, projects, visit, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';

/** The endpoints of django-oauth-toolkit. */
const profile = { authorizationPath: '/o/authorize/', tokenPath: '/o/token/', tokenRequest: 'form' } as const;

test('a dispatcher that docs/production.md composes adds a header to token requests alone', async () => {
  const dispatcher = new EnvHttpProxyAgent().compose((dispatch) => (options, handler) => {
    if (!options.path.startsWith('/oauth/token')) return dispatch(options, handler);
    const headers = [...(options.headers as string[]), 'x-gateway-key', 'key'];
    return dispatch({ ...options, headers }, handler);
  });
  await open({ strategy: { dispatcher } });
  await logIn();
  expect((await projects()).status).toBe(200);
  const keyed = world.service.requests.filter(({ headers }) => headers['x-gateway-key'] === 'key');
  expect([keyed.map(({ path }) => path), world.service.requests.length > 1]).toEqual([['/oauth/token'], true]);
});

describe('an endpoint is used as it was given, with a trailing slash and a query', () => {
  test.for<[string, (authUrl: string) => { authorizationPath: string; tokenPath: string }, Record<string, string>]>([
    ['paths', () => ({ authorizationPath: '/o/authorize/', tokenPath: '/o/token/' }), {}],
    [
      'paths with a query',
      () => ({ authorizationPath: '/o/authorize/?tenant=a%20b', tokenPath: '/o/token/?tenant=a%20b' }),
      { tenant: 'a b' },
    ],
    [
      'whole URLs',
      (authUrl) => ({ authorizationPath: `${authUrl}/o/authorize/`, tokenPath: `${authUrl}/o/token/` }),
      {},
    ],
    [
      'whole URLs with a query',
      (authUrl) => ({
        authorizationPath: `${authUrl}/o/authorize/?tenant=a%20b`,
        tokenPath: `${authUrl}/o/token/?tenant=a%20b`,
      }),
      { tenant: 'a b' },
    ],
  ])('%s', async ([, paths, query]) => {
    const running = (await open({ service: { profile } })).service;
    await loggedIn({ running, strategy: paths(running.authUrl), verify: undefined });
    expect((await projects()).status).toBe(200);
    running.expireAccessTokens();
    expect((await projects()).status).toBe(200);
    const location = (await fetch(`${world.url}/login`, { redirect: 'manual' })).headers.get('location') ?? '';
    const asked = new URL(location);
    expect(asked.pathname).toBe('/o/authorize/');
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({ ...query, response_type: 'code' });
    const sent = running.requests.filter(({ method }) => method === 'POST').map((one) => [one.path, one.query]);
    expect(sent).toEqual([['/o/token/', query]]);
  });
});

describe('a redirect of the token endpoint is not followed', threats(26), () => {
  test.for([301, 302, 307, 308])('%s: the error names the option and the slash', async (status) => {
    await open();
    world.service.fail('token', { status, headers: { location: `${world.service.authUrl}/oauth/token/` }, body: '' });
    expect((await world.logIn(browser)).status).toBe(502);
    expect(world.errors).toMatchObject([
      { name: 'TokenResponseError', message: expect.stringMatching(/status 30\d .*tokenPath.*trailing slash/) },
    ]);
    expect(world.tokenRequests()).toHaveLength(1);
    expect(world.service.requests.filter(({ path }) => path === '/oauth/token/')).toEqual([]);
  });
});

describe('a token endpoint that takes bodies of another format', () => {
  test.for<['form' | 'json', 'form' | 'json']>([
    ['form', 'json'],
    ['json', 'form'],
  ])('takes %s, got %s: the error of the code exchange names tokenRequest', async ([takes, sent]) => {
    await open({
      service: { profile: { tokenRequest: takes } },
      strategy: { tokenRequest: sent },
    });
    const refusal = async () => {
      expect((await logIn()).status).toBe(502);
      return world.errors.at(-1);
    };
    const message = expect.stringMatching(new RegExp(`set tokenRequest: '${takes}'\\.$`));
    expect(await refusal()).toMatchObject({ name: 'TokenError', error: 'invalid_request', message });
    world.service.fail('token', { status: 400, body: { error: 'unsupported_grant_type' } });
    expect(await refusal()).toMatchObject({ name: 'TokenError', error: 'unsupported_grant_type', message });
    world.service.fail('token', { status: 415, body: { status: 415, error: 'Unsupported Media Type' } });
    expect(await refusal()).toMatchObject({ name: 'TokenError', message });
    world.service.fail('token', { status: 415, body: '' });
    expect(await refusal()).toMatchObject({ name: 'TokenResponseError', message });
    world.service.fail('token', { status: 400, body: { error: 'invalid_grant' } });
    expect(await refusal()).toMatchObject({ message: expect.not.stringContaining('tokenRequest') });
  });
});

describe('error=consent_required', threats(8), () => {
  test.for<[string, Partial<StrategyOptions>, number]>([
    ['is a decline', {}, 401],
    ['is an error after authorizationParams with prompt=none', { authorizationParams: { prompt: 'none' } }, 502],
    ['is an error after a prompt for this request', { authorizationParams: () => ({ prompt: 'none' }) }, 502],
    ['is an error after a prompt of the endpoint', { authorizationPath: '/oauth/authorize?prompt=none' }, 502],
    ['is an error after a list with none', { authorizationParams: { prompt: 'login none' } }, 502],
    ['is a decline after prompt=consent', { authorizationParams: { prompt: 'consent' } }, 401],
    ['is a decline after a prompt of the endpoint', { authorizationPath: '/oauth/authorize?prompt=consent' }, 401],
  ])('%s', async ([, strategy, status]) => {
    await open({ strategy });
    const location = new URL((await visit('/login')).headers.get('location') ?? '');
    const query = new URLSearchParams({ error: 'consent_required', state: location.searchParams.get('state') ?? '' });
    expect((await visit(`/callback?${query}`)).status).toBe(status);
    if (status === 401) expect(world.errors).toEqual([]);
    else expect(world.errors).toMatchObject([{ name: 'AuthorizationError', error: 'consent_required' }]);
    expect(world.tokenRequests()).toEqual([]);
  });
});

describe('token requests', () => {
  const requestsTo = (path: string) => world.service.requests.filter((request) => request.path === path);

  test.for<[headers: StrategyOptions['headers'], agent: string]>([
    [undefined, 'passport-oauth-app'],
    [{ 'User-Agent': 'acme/1.0', 'X-Version': '7' }, 'acme/1.0'],
  ])(
    'and revocations have the User-Agent of %j: %s, and no other header of it',
    threats(112),
    async ([headers, agent]) => {
      await loggedIn({ strategy: { headers, revocationPath: '/oauth/revoke' } });
      world.service.expireAccessTokens();
      expect((await projects()).status).toBe(200);
      await logOut();
      await world.strategy.close();
      const sent = [...requestsTo('/oauth/token'), ...requestsTo('/oauth/revoke')];
      expect(sent.map((request) => request.headers['user-agent'])).toEqual([agent, agent]);
      for (const request of sent) expect(request.headers).not.toHaveProperty('x-version');
    },
  );

  test('have tokenParams, the same for all or by grant type', async () => {
    const resource = 'https://mcp.example.com';
    const byType: StrategyOptions['tokenParams'] = ({ grantType }) =>
      grantType === 'refresh_token' ? { scope: 'project' } : { resource };
    for (const [tokenParams, sent] of [
      [{ resource }, [{ resource }, { resource }]],
      [byType, [{ resource }, { scope: 'project' }]],
    ] as const) {
      await open({ strategy: { tokenParams } });
      await logIn();
      world.service.expireAccessTokens();
      expect((await projects()).status).toBe(200);
      expect(requestsTo('/oauth/token').map(({ body }) => body)).toEqual([
        { ...sent[0], grant_type: 'authorization_code', ...ours(5) },
        { ...sent[1], grant_type: 'refresh_token', ...ours(4) },
      ]);
    }
  });

  /** The other parameters of a code exchange, or of a refresh. */
  const ours = (count: number) => ({
    ...{ client_id: expect.anything(), client_secret: expect.anything() },
    ...(count === 5
      ? { redirect_uri: expect.anything(), code: expect.anything() }
      : { refresh_token: expect.anything() }),
  });

  test.for<[what: string, tokenParams: unknown]>([
    ['a parameter of the package', { client_secret: 'x' }],
    ['a number', { audience: 7 }],
    ['a list', ['resource']],
  ])(
    'have no tokenParams with %s: an object is refused at once, and a result before anything is sent',
    async ([, tokenParams]) => {
      await expect(open({ strategy: { tokenParams: tokenParams as never } })).rejects.toMatchObject({
        name: 'ConfigurationError',
        option: 'tokenParams',
      });
      await open({ strategy: { tokenParams: () => tokenParams as never } });
      expect((await logIn()).status).toBe(500);
      expect(world.errors[0]).toMatchObject({ name: 'ConfigurationError', option: 'tokenParams' });
      expect(requestsTo('/oauth/token')).toEqual([]);
    },
  );
});
