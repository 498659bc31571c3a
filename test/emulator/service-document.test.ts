import { describe, expect, test } from 'vitest';
import {
  authorizeUrl,
  body,
  callback,
  claimsOf,
  codeFor,
  decide,
  exchange,
  onHost,
  projects,
  refresh,
  service,
  startService,
  startServiceForEachTest,
  target,
  tokensFor,
} from './plain-client.js';

startServiceForEachTest();

describe('service.md 1 and 2: what the service does, resources and fields', () => {
  test('registration yields a client ID and a client secret, and takes one or more redirect URLs', async () => {
    const urls = ['http://localhost:8080/a', 'http://localhost:8080/b'];
    const application = service.register({ redirectUrls: urls });
    expect(application).toMatchObject({ clientID: expect.any(String), clientSecret: expect.any(String) });
    expect(application.redirectUrls).toEqual(urls);
    for (const url of urls) {
      const response = await decide(authorizeUrl({ client_id: application.clientID, redirect_uri: url }));
      expect(target(response).href.startsWith(`${url}?code=`)).toBe(true);
    }
  });

  test('a token response has exactly access_token, token_type bearer, expires_in 7200 and refresh_token', async () => {
    const response = await exchange(await codeFor());
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: 7200,
      refresh_token: expect.any(String),
    });
  });

  test('the access token is a JWT, and the organization domain can be read from it', async () => {
    const member = claimsOf((await tokensFor('2')).access_token);
    expect(member).toMatchObject({ sub: '2', domain: 'acme', iat: expect.any(Number) });
    expect(Number(member.exp) - Number(member.iat)).toBe(7200);
    expect(claimsOf((await tokensFor('1')).access_token)).not.toHaveProperty('domain');
  });
});

describe('service.md 3 and 8: states and transitions, limits', () => {
  test.each([7200, 5])(
    'an access token is usable until its %i seconds have passed, and not longer',
    async (lifetime) => {
      await startService({ accessTokenLifetime: lifetime });
      const { access_token, expires_in } = await tokensFor();
      expect(expires_in).toBe(lifetime);
      service.advance(expires_in - 5);
      expect((await projects(access_token)).status).toBe(200);
      service.advance(5);
      expect((await projects(access_token)).status).toBe(401);
    },
  );
});

describe('service.md 4.1: request authorization code', () => {
  test('the user is asked, with the application and the requested scopes in view', async () => {
    // Several scopes come in one parameter, a space as a plus sign.
    expect(authorizeUrl()).toContain('scope=project+tm');
    const response = await fetch(authorizeUrl());
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const page = await response.text();
    const scopes = ['See and change your projects', '<code>project</code>', '<code>tm</code>'];
    for (const text of ['Sample application', ...scopes, 'Approve', 'Decline']) expect(page).toContain(text);
  });

  test('on approval the redirect carries code and state', async () => {
    const response = await decide(authorizeUrl());
    expect(response.status).toBe(302);
    const url = target(response);
    expect(url.origin + url.pathname).toBe(callback);
    expect([...url.searchParams.keys()]).toEqual(['code', 'state']);
    expect(url.searchParams.get('state')).toBe('some-state');
  });

  test('on decline the redirect carries error=access_denied and state', async () => {
    const response = await decide(authorizeUrl(), { button: 'Decline' });
    expect(target(response).href).toBe(`${callback}?error=access_denied&state=some-state`);
  });

  test.each(['a+b c&d=e#f?%2F%', 'ä€😀', '"><script>', "'", 'a'.repeat(2000), ''])(
    'the state %j is returned unchanged',
    async (state) => {
      const url = target(await decide(authorizeUrl({ state })));
      expect(url.searchParams.get('state')).toBe(state);
    },
  );

  test('state may be left out, and then none is returned', async () => {
    const url = target(await decide(authorizeUrl({ state: undefined })));
    expect([...url.searchParams.keys()]).toEqual(['code']);
  });

  test.each(['client_id', 'redirect_uri'])('without %s there is no redirect', async (name) => {
    const response = await fetch(authorizeUrl({ [name]: undefined }), { redirect: 'manual' });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(name);
  });

  test.each(['response_type', 'scope'])('without %s the application hears of an error', async (name) => {
    const response = await fetch(authorizeUrl({ [name]: undefined }), { redirect: 'manual' });
    expect(response.status).toBe(302);
    expect(target(response).searchParams.get('error')).toBe('invalid_request');
    expect(target(response).searchParams.get('state')).toBe('some-state');
  });

  test('response_type has the fixed value code', async () => {
    const response = await fetch(authorizeUrl({ response_type: 'token' }), { redirect: 'manual' });
    expect(target(response).searchParams.get('error')).toBe('unsupported_response_type');
  });

  test.each([
    ...['http://localhost:3000/callback/', 'http://localhost:3000/callback?x=1', 'http://localhost:3000/Callback'],
    ...['http://localhost:3001/callback', 'https://localhost:3000/callback', 'http://evil.example/callback'],
    ...['//evil.example', 'javascript:alert(1)'],
  ])('service.md 4.1, 5.6 and 7: nobody is redirected to the unregistered %s', async (url) => {
    for (const button of ['Approve', 'Decline']) {
      const asked = await fetch(authorizeUrl({ redirect_uri: url }), { redirect: 'manual' });
      expect(asked.status).toBe(400);
      expect(asked.headers.get('location')).toBeNull();
      expect(await asked.text()).toContain('is not registered with the application. Only this one is: http');
      const fields = new URLSearchParams(new URL(authorizeUrl({ redirect_uri: url })).search);
      fields.set('user', '1');
      fields.set('decision', button.toLowerCase());
      const approval = { method: 'POST', body: fields, redirect: 'manual' } as const;
      const sent = await fetch(`${service.authUrl}/oauth/authorize`, approval);
      expect(sent.status).toBe(400);
      expect(sent.headers.get('location')).toBeNull();
    }
  });
});

describe('service.md 4.2: exchange code for tokens', () => {
  test.each(['grant_type', 'client_id', 'client_secret', 'redirect_uri', 'code'])('%s is required', async (name) => {
    const code = await codeFor();
    for (const value of [undefined, '', null, 7, ['x'], { a: 1 }]) {
      const response = await exchange(code, { [name]: value });
      expect(response.status).toBe(400);
      const { error, error_description } = await body<Record<string, string>>(response);
      expect(error).toBe('invalid_request');
      expect(error_description).toContain(name);
    }
    expect((await exchange(code)).status).toBe(200);
  });

  test('redirect_uri must be the one that the authorization request used', async () => {
    const other = 'http://localhost:3000/other';
    service.register({ clientID: service.options.clientID, redirectUrls: [other] });
    const code = await codeFor();
    const response = await exchange(code, { redirect_uri: other });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
  });

  test('the code must be the one that was received', async () => {
    const response = await exchange('made-up');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
  });
});

describe('service.md 4.3: refresh token', () => {
  test.each(['grant_type', 'client_id', 'client_secret', 'refresh_token'])('%s is required', async (name) => {
    const { refresh_token } = await tokensFor();
    for (const value of [undefined, '', null, 7]) {
      const response = await refresh(refresh_token, { [name]: value });
      expect(response.status).toBe(400);
      expect((await body<Record<string, string>>(response)).error_description).toContain(name);
    }
    expect((await refresh(refresh_token)).status).toBe(200);
  });
});

describe('service.md 4.4: API request with the access token', () => {
  test('the host of an enterprise organization serves its members', async () => {
    const { access_token } = await tokensFor('2');
    expect(service.enterpriseBaseUrl).toMatch(/^http:\/\/\{domain\}\.api\.localhost:\d+$/);
    const response = await onHost('acme.api.localhost', '/api/v2/projects', access_token);
    expect(response.status).toBe(200);
    expect(response.text).toContain('Acme Storefront');
  });

  test('the host of an enterprise organization refuses tokens of all others', async () => {
    const [ada, ben] = [await tokensFor('1'), await tokensFor('2')];
    expect((await onHost('acme.api.localhost', '/api/v2/projects', ada.access_token)).status).toBe(403);
    expect((await onHost('other.api.localhost', '/api/v2/projects', ben.access_token)).status).toBe(403);
    expect((await onHost('acme.api.localhost', '/api/v2/projects', 'made-up')).status).toBe(401);
  });
});

describe('service.md 5: authentication', () => {
  test('the token endpoint refuses wrong credentials', async () => {
    const code = await codeFor();
    for (const wrong of [{ client_id: 'made-up' }, { client_secret: 'made-up' }]) {
      const response = await exchange(code, wrong);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: 'invalid_client' });
    }
  });

  test('the API wants the scheme Bearer and the access token', async () => {
    const { access_token, refresh_token } = await tokensFor();
    const url = `${service.baseUrl}/api/v2/projects`;
    const others = [`Basic ${access_token}`, access_token, `Bearer ${refresh_token}`, 'Bearer a.b.c'];
    for (const authorization of ['', 'Bearer', ...others]) {
      const response = await fetch(url, { headers: { authorization } });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /);
      expect(await response.json()).toEqual({ error: { message: expect.any(String), code: 401 } });
    }
    expect((await fetch(`${url}?access_token=${access_token}`)).status).toBe(401);
    expect((await fetch(url, { headers: { authorization: `Bearer ${access_token}` } })).status).toBe(200);
  });
});

describe('service.md 9: versioning', () => {
  test('the API path carries its version, and there is no other; the other endpoints carry none', async () => {
    const { access_token } = await tokensFor();
    const headers = { authorization: `Bearer ${access_token}` };
    for (const path of ['/api/v1/projects', '/api/projects', '/projects', '/v2/oauth/token', '/api/v2/oauth/token']) {
      expect((await fetch(service.baseUrl + path, { headers })).status).toBe(404);
    }
  });
});
