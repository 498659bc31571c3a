import * as oauth from 'oauth4webapi';
import * as client from 'openid-client';
import { AuthorizationCode } from 'simple-oauth2';
import { describe, expect, test } from 'vitest';
import { authorizeUrl, callback, projects, service, startServiceForEachTest } from '../emulator/plain-client.js';

// Clients that others wrote, and that know nothing of this package. The service wants JSON where RFC 6749 has forms, so the two that
// cannot send JSON have their bodies turned into it on the way, and nothing else.

startServiceForEachTest();

function asJson(body: URLSearchParams, headers: Headers): { readonly body: string; readonly headers: Headers } {
  headers.set('content-type', 'application/json');
  return { body: JSON.stringify(Object.fromEntries(body)), headers };
}

function metadata() {
  return {
    issuer: service.authUrl,
    authorization_endpoint: `${service.authUrl}/oauth/authorize`,
    token_endpoint: `${service.authUrl}/oauth/token`,
  };
}

describe('oauth4webapi', () => {
  const options = (): oauth.TokenEndpointRequestOptions => ({
    [oauth.allowInsecureRequests]: true,
    [oauth.customFetch]: (url, { body, headers, method, redirect }) =>
      fetch(url, { method, redirect, ...asJson(new URLSearchParams(String(body)), new Headers(headers)) }),
  });

  test('logs in with PKCE, refreshes, calls the API', async () => {
    const [server, own] = [metadata(), { client_id: service.options.clientID }];
    const authentication = oauth.ClientSecretPost(service.options.clientSecret);
    const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
    const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
    const url = authorizeUrl({ state, code_challenge, code_challenge_method: 'S256' });

    const parameters = oauth.validateAuthResponse(server, own, new URL(await service.approve(url)), state);
    const exchange = [server, own, authentication, parameters, callback, verifier, options()] as const;
    const response = await oauth.authorizationCodeGrantRequest(...exchange);
    const first = await oauth.processAuthorizationCodeResponse(server, own, response);
    expect(first).toMatchObject({ token_type: 'bearer', expires_in: 7200 });

    const refresh = async (token = '') => {
      const answer = await oauth.refreshTokenGrantRequest(server, own, authentication, token, options());
      return oauth.processRefreshTokenResponse(server, own, answer);
    };
    const call = (token: string) => {
      const resource = new URL(`${service.baseUrl}/api/v2/projects`);
      const insecure = { [oauth.allowInsecureRequests]: true };
      return oauth.protectedResourceRequest(token, 'GET', resource, undefined, null, insecure);
    };
    const second = await refresh(first.refresh_token);
    expect((await call(second.access_token)).status).toBe(200);
    await expect(refresh(first.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant', status: 400 });
    await expect(call('made-up')).rejects.toMatchObject({
      cause: [{ scheme: 'bearer', parameters: { error: 'invalid_token' } }],
    });
  });

  test('understands a decline', async () => {
    const own = { client_id: service.options.clientID };
    const declined = new URL(await service.approve(authorizeUrl({ state: 's' }), { decline: true }));
    expect(() => oauth.validateAuthResponse(metadata(), own, declined, 's')).toThrow(
      expect.objectContaining({ error: 'access_denied' }),
    );
  });
});

describe('openid-client', () => {
  test('logs in with PKCE, refreshes, calls the API on behalf of a member of an organization', async () => {
    const { clientID, clientSecret } = service.options;
    const config = new client.Configuration(metadata(), clientID, undefined, client.ClientSecretPost(clientSecret));
    client.allowInsecureRequests(config);
    config[client.customFetch] = (url, { body, headers, method, redirect }) =>
      fetch(url, {
        method,
        redirect: redirect ?? 'follow',
        ...(body instanceof URLSearchParams ? asJson(body, new Headers(headers)) : { headers }),
      });
    const [pkceCodeVerifier, expectedState] = [client.randomPKCECodeVerifier(), client.randomState()];
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: callback,
      scope: 'project',
      state: expectedState,
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });

    const arrived = new URL(await service.approve(url, { user: '2' }));
    const first = await client.authorizationCodeGrant(config, arrived, { pkceCodeVerifier, expectedState });
    const second = await client.refreshTokenGrant(config, first.refresh_token ?? '');
    expect(second.refresh_token).not.toBe(first.refresh_token);
    const resource = new URL(`${service.baseUrl}/api/v2/projects`);
    const answer = await client.fetchProtectedResource(config, second.access_token, resource, 'GET');
    expect(await answer.text()).toContain('Acme Storefront');
  });
});

describe('simple-oauth2', () => {
  test('logs in and refreshes, with JSON bodies of its own', async () => {
    const { clientID, clientSecret, authUrl } = service.options;
    const simple = new AuthorizationCode({
      client: { id: clientID, secret: clientSecret },
      auth: { tokenHost: authUrl, authorizePath: '/oauth/authorize', tokenPath: '/oauth/token' },
      options: { bodyFormat: 'json', authorizationMethod: 'body' },
    });
    const url = simple.authorizeURL({ redirect_uri: callback, scope: ['project', 'tm'], state: 's' });
    const code = new URL(await service.approve(url)).searchParams.get('code') ?? '';
    const first = await simple.getToken({ code, redirect_uri: callback });
    expect(first.expired()).toBe(false);
    const second = await first.refresh();
    expect((await projects(String(second.token.access_token))).status).toBe(200);
    await expect(first.refresh()).rejects.toMatchObject({ data: { payload: { error: 'invalid_grant' } } });
  });
});
