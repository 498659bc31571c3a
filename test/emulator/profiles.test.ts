import type { EmulatorOptions } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import type { ProfileName } from '../../src/emulator/profiles.js';
import { type RawOptions, rawRequest } from '../support/raw-request.js';
import { callback, service, startService } from './plain-client.js';

const awkwardSecret = 'a:b%c+d ü';

async function start(profile: EmulatorOptions['profile'], options: EmulatorOptions = {}): Promise<void> {
  const applications = [{ clientID: 'my:id', clientSecret: awkwardSecret, redirectUrls: [callback] }];
  await startService({ applications, profile, ...options });
}

/** Logs in as RFC 6749 says, with the options of the profile. */
async function code(changes: Record<string, string> = {}): Promise<string> {
  const { authorizationPath = '/oauth/authorize', authorizationParams = {}, scopeSeparator = ' ' } = service.options;
  const query = new URLSearchParams({
    client_id: service.options.clientID,
    redirect_uri: callback,
    response_type: 'code',
    scope: ['read', 'write'].join(scopeSeparator),
    ...authorizationParams,
    ...changes,
  });
  const url = new URL(await service.approve(`${service.authUrl}${authorizationPath}?${query}`));
  return url.searchParams.get('code') ?? url.searchParams.get('error') ?? '';
}

const encode = (part: string) => new URLSearchParams({ part }).toString().slice('part='.length);

async function token(
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const { tokenPath = '/oauth/token', tokenRequest = 'json', clientAuthentication = 'body' } = service.options;
  const { clientID, clientSecret } = service.options;
  const isBasic = clientAuthentication === 'basic';
  const basic = Buffer.from(`${encode(clientID)}:${encode(clientSecret)}`).toString('base64');
  const all = { ...fields, ...(isBasic ? {} : { client_id: clientID, client_secret: clientSecret }) };
  const response = await fetch(`${service.authUrl}${tokenPath}`, {
    method: 'POST',
    headers: {
      'content-type': tokenRequest === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
      ...(isBasic ? { authorization: `Basic ${basic}` } : {}),
      ...headers,
    },
    body: tokenRequest === 'json' ? JSON.stringify(all) : new URLSearchParams(all).toString(),
  });
  const { status, headers: answered } = response;
  return { status, body: (await response.json()) as Record<string, unknown>, headers: answered };
}

const exchange = async (headers = {}) =>
  token({ grant_type: 'authorization_code', redirect_uri: callback, code: await code(), expiring: '1' }, headers);
const refresh = (refreshToken: unknown) => token({ grant_type: 'refresh_token', refresh_token: String(refreshToken) });

function api(accessToken: unknown, path = '/user'): Promise<Response> {
  const { apiPath = '/api/v2', accessTokenHeader } = service.options;
  const headers = accessTokenHeader
    ? { [accessTokenHeader]: String(accessToken) }
    : { authorization: `Bearer ${accessToken}` };
  return fetch(`${service.baseUrl}${apiPath}${path}`, { headers });
}

const names = [
  ...['crowdin', 'form', 'basic', 'gitlab', 'atlassian', 'linear', 'notion', 'hubspot', 'zoom', 'box', 'miro'],
  ...['calendly', 'github', 'google', 'microsoft', 'discord', 'twitch', 'spotify', 'quickbooks', 'salesforce'],
  ...['zendesk', 'shopify'],
] as const satisfies readonly ProfileName[];

test.each(names)('the profile %s logs in, calls, expires, refreshes and refuses', async (name) => {
  await start(name);
  const first = await exchange();
  const types: Partial<Record<ProfileName, string | undefined>> = { salesforce: 'Bearer', shopify: undefined };
  expect(first).toMatchObject({ status: 200 });
  expect(first.body.token_type).toBe(name in types ? types[name] : 'bearer');
  expect((await api(first.body.access_token)).status).toBe(200);
  service.expireAccessTokens();
  expect((await api(first.body.access_token)).status).toBe(401);
  const second = await refresh(first.body.refresh_token);
  expect(second.status).toBe(200);
  expect((await api(second.body.access_token)).status).toBe(200);
  service.revoke('1');
  const refused = await refresh(second.body.refresh_token ?? first.body.refresh_token);
  const own: Partial<Record<ProfileName, object>> = {
    hubspot: { status: 'BAD_REFRESH_TOKEN' },
    twitch: { error: 'Bad Request', message: 'Invalid refresh token' },
  };
  const body = own[name] ?? { error: 'invalid_grant' };
  expect(refused).toMatchObject({ status: name === 'github' ? 200 : 400, body });
  expect((await api(second.body.access_token)).status).toBe(401);
});

describe('client authentication', () => {
  test('basic takes credentials that are form-encoded (RFC 6749, 2.3.1), and no others', async () => {
    await start('basic');
    expect((await exchange()).status).toBe(200);
    for (const raw of [`my:id:${awkwardSecret}`, `${encode('my:id')}:${awkwardSecret}`, 'my%3Aid:%', 'my%3Aid']) {
      const authorization = `Basic ${Buffer.from(raw).toString('base64')}`;
      expect(await exchange({ authorization })).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    }
    expect((await exchange({ authorization: 'Bearer x' })).headers.get('www-authenticate')).toMatch(/^Basic /);
  });

  test('basic refuses a secret in the body', async () => {
    await start('basic');
    const fields = { grant_type: 'refresh_token', refresh_token: 'x', client_secret: awkwardSecret };
    expect((await token(fields)).body.error).toBe('invalid_client');
  });

  test('body ignores the header', async () => {
    await start('form');
    const authorization = `Basic ${Buffer.from('x:y').toString('base64')}`;
    expect((await exchange({ authorization })).status).toBe(200);
    expect((await token({ grant_type: 'refresh_token', refresh_token: 'x', client_secret: 'wrong' })).status).toBe(400);
  });
});

test('token requests: form refuses JSON, repeated fields and invalid encoding', async () => {
  await start('form');
  const json = { 'content-type': 'application/json' };
  expect((await exchange(json)).body).toMatchObject({ error: 'invalid_request' });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  for (const body of ['grant_type=refresh_token&grant_type=refresh_token', 'grant_type=%E0%A4%A']) {
    const response = await fetch(`${service.authUrl}/oauth/token`, { method: 'POST', headers, body });
    expect(await response.json()).toMatchObject({ error: 'invalid_request' });
  }
});

describe('tokens', () => {
  test('rotation: same repeats the refresh token, which keeps working', async () => {
    await start('hubspot');
    const { body } = await exchange();
    for (let n = 0; n < 3; n += 1) {
      expect((await refresh(body.refresh_token)).body.refresh_token).toBe(body.refresh_token);
    }
  });

  test('rotation: omit leaves the refresh token out, and the first one keeps working', async () => {
    await start({ rotation: 'omit' });
    const { body } = await exchange();
    for (let n = 0; n < 3; n += 1) expect((await refresh(body.refresh_token)).body).not.toHaveProperty('refresh_token');
    expect((await refresh(body.refresh_token)).status).toBe(200);
  });

  test.each<[string, ProfileName, EmulatorOptions, object]>([
    ['accessToken: opaque cannot be read as a JWT', 'gitlab', {}, { access_token: expect.stringMatching(/^[\w-]+$/) }],
    ['the profile has a lifetime of access tokens', 'hubspot', {}, { expires_in: 1800 }],
    ['the option takes precedence over that', 'hubspot', { accessTokenLifetime: 60 }, { expires_in: 60 }],
  ])('%s', async (_what, profile, options, body) => {
    await start(profile, options);
    expect(await exchange()).toMatchObject({ status: 200, body });
  });

  test('expiresIn: false leaves expires_in out', async () => {
    await start('notion');
    expect((await exchange()).body).not.toHaveProperty('expires_in');
  });

  test('tokenFields of a user are members of the token responses', async () => {
    await start('form', { users: [{ id: '1', name: 'Ada', tokenFields: { workspace: { id: 'w' } } }] });
    const { body } = await exchange();
    expect(body.workspace).toEqual({ id: 'w' });
    expect((await refresh(body.refresh_token)).body.workspace).toEqual({ id: 'w' });
  });
});

describe('the rules of services', () => {
  test('salesforce ends the grant when a used refresh token comes again, and names the API, but no lifetime', async () => {
    await start('salesforce');
    const first = await exchange();
    expect(first.body).toMatchObject({ instance_url: service.baseUrl });
    expect(first.body).not.toHaveProperty('expires_in');
    const second = await refresh(first.body.refresh_token);
    expect((await refresh(first.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await refresh(second.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await api(second.body.access_token)).status).toBe(401);
  });

  test('zendesk ends both former tokens at a refresh', async () => {
    await start('zendesk');
    const first = await exchange();
    expect(first.body).toMatchObject({ expires_in: 1800, refresh_token_expires_in: 2_592_000 });
    const second = await refresh(first.body.refresh_token);
    expect((await api(first.body.access_token)).status).toBe(401);
    expect((await refresh(first.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await api(second.body.access_token)).status).toBe(200);
  });

  test('shopify accepts the former refresh token until its replacement is used', async () => {
    await start('shopify');
    const first = await exchange();
    expect(first.body).toMatchObject({ expires_in: 3600, refresh_token_expires_in: 7_776_000 });
    await refresh(first.body.refresh_token);
    const second = await refresh(first.body.refresh_token);
    expect((await api(second.body.access_token)).status).toBe(200);
    const third = await refresh(second.body.refresh_token);
    expect(third.status).toBe(200);
    expect((await refresh(first.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await refresh(second.body.refresh_token)).status).toBe(200);
  });

  test('shopify has one grant of an application, and tokens expire only on request', async () => {
    await start('shopify');
    const [first, second] = [await exchange(), await exchange()];
    expect((await refresh(first.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await api(second.body.access_token)).status).toBe(200);
    // What Shopify's own libraries send: no response_type, and with the code neither grant_type nor redirect_uri.
    const query = { client_id: service.options.clientID, scope: 'read,write', redirect_uri: callback, state: 's' };
    const url = `${service.authUrl}/admin/oauth/authorize?${new URLSearchParams(query)}&grant_options%5B%5D=`;
    const fields = { code: new URL(await service.approve(url)).searchParams.get('code') ?? '' };
    expect((await token({ ...fields, redirect_uri: `${callback}/x` })).body.error).toBe('invalid_grant');
    const permanent = await token(fields);
    expect(Object.keys(permanent.body)).toEqual(['access_token']);
    service.advance(86_400 * 365);
    expect((await api(permanent.body.access_token)).status).toBe(200);
  });
});

describe('tenants', () => {
  const at =
    (host: string) =>
    (path: string, options: RawOptions = {}) => {
      const { port } = new URL(service.baseUrl);
      const headers = { ...options.headers, host: `${host}:${port}` };
      return rawRequest(service.baseUrl, path, { ...options, headers });
    };

  test('each has a host and an application, and neither its codes nor its tokens work at another', async () => {
    await start('zendesk', { tenants: ['acme', 'globex'] });
    const { authUrl, baseUrl, clientID, clientSecret } = service.optionsOf('acme');
    expect(authUrl).toBe(baseUrl);
    expect(new URL(authUrl).hostname).toBe('acme.localhost');
    const query = { client_id: clientID, redirect_uri: callback, response_type: 'code', scope: 'read' };
    const url = `${authUrl}/oauth/authorizations/new?${new URLSearchParams(query)}`;
    const approved = new URL(await service.approve(url));
    const request = (host: string, credentials: object) =>
      at(host)('/oauth/tokens', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ grant_type: 'authorization_code', redirect_uri: callback, code: approved.searchParams.get('code') },
          ...{ client_id: clientID, client_secret: clientSecret, ...credentials },
        }),
      });
    const other = service.optionsOf('globex');
    const others = { client_id: other.clientID, client_secret: other.clientSecret };
    expect((await request('globex.localhost', {})).status).toBe(401);
    expect((await request('globex.localhost', others)).status).toBe(400);
    expect((await request('127.0.0.1', {})).status).toBe(401);
    const { access_token } = JSON.parse((await request('acme.localhost', {})).text);
    const headers = { authorization: `Bearer ${access_token}` };
    expect((await at('acme.localhost')('/api/v2/user', { headers })).status).toBe(200);
    for (const host of ['globex.localhost', 'localhost'])
      expect((await at(host)('/api/v2/user', { headers })).status).toBe(401);
    expect((await at('initech.localhost')('/api/v2/user', { headers })).status).toBe(404);
    expect(() => service.optionsOf('initech')).toThrow(/^optionsOf\(\): the tenant must be one of tenants/);
  });

  test('a fault may be of one tenant, and both are controlled over HTTP', async () => {
    await start('zendesk', { tenants: ['acme', 'globex'] });
    const control = await fetch(`${service.baseUrl}/_emulator/tenants`);
    expect(await control.json()).toMatchObject([
      { tenant: 'acme', options: { authUrl: service.optionsOf('acme').authUrl, clientSecret: 'acme-client-secret' } },
      { tenant: 'globex' },
    ]);
    const fault = JSON.stringify({ endpoint: 'api', status: 503, tenant: 'acme' });
    const headers = { 'content-type': 'application/json' };
    await fetch(`${service.baseUrl}/_emulator/faults`, { method: 'POST', headers, body: fault });
    for (const [host, status] of [
      ['globex', 401],
      ['acme', 503],
      ['acme', 401],
    ] as const)
      expect((await at(`${host}.localhost`)('/api/v2/user')).status).toBe(status);
    expect(() => service.fail('api', { tenant: 'initech' })).toThrow(/^tenant must be one of 'acme', 'globex'/);
  });
});

describe('authorization requests', () => {
  test('parameters that a service requires are checked', async () => {
    await start('atlassian');
    expect(await code({ audience: 'other' })).toBe('invalid_request');
  });

  test('scopes are split by the separator of the service', async () => {
    await start('linear', { scopes: { read: 'Read', write: 'Write' } });
    expect((await code()).length).toBeGreaterThan(20);
    expect(await code({ scope: 'read write' })).toBe('invalid_scope');
  });

  test('a service without scopes accepts requests without one', async () => {
    await start('notion');
    expect((await code({ scope: '' })).length).toBeGreaterThan(20);
  });
});

test('options has what a strategy must be told, by name also where a profile is like the default', async () => {
  await start('zoom');
  expect(service.options).toMatchObject({ apiPath: '/v2', tokenRequest: 'form', clientAuthentication: 'basic' });
  await service.close();
  await start('crowdin');
  expect(service.options).toMatchObject({ tokenPath: '/oauth/token', apiPath: '/api/v2', scopeSeparator: ' ' });
});
