import { describe, expect, test } from 'vitest';
import {
  authorizeUrl,
  body,
  callback,
  claimsOf,
  codeFor,
  decide,
  exchange,
  post,
  postToken,
  projects,
  type Refusal,
  refresh,
  service,
  startService,
  startServiceForEachTest,
  type Tokens,
  target,
  tokensFor,
} from './plain-client.js';

startServiceForEachTest();

async function refused(response: Response, error: string, description: RegExp): Promise<void> {
  expect(response.status).toBe(error === 'invalid_client' ? 401 : 400);
  const refusal = await body<Refusal>(response);
  expect(refusal.error).toBe(error);
  expect(refusal.error_description).toMatch(description);
}

async function next(tokens: Tokens): Promise<Tokens> {
  const response = await refresh(tokens.refresh_token);
  expect(response.status).toBe(200);
  return body<Tokens>(response);
}

describe('authorization codes', () => {
  test('a code works once', async () => {
    const code = await codeFor();
    const tokens = await body<Tokens>(await exchange(code));
    await refused(await exchange(code), 'invalid_grant', /used already/);
    expect((await projects(tokens.access_token)).status).toBe(200);
    await next(tokens);
  });

  test('of fifty uses at once, one succeeds', async () => {
    const code = await codeFor();
    const responses = await Promise.all(Array.from({ length: 50 }, () => exchange(code)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('with codeReuse: revoke the second use ends the grant too (RFC 6749, 4.1.2)', async () => {
    await startService({ codeReuse: 'revoke' });
    const code = await codeFor();
    const tokens = await body<Tokens>(await exchange(code));
    await refused(await exchange(code), 'invalid_grant', /used already/);
    expect((await projects(tokens.access_token)).status).toBe(401);
    await refused(await refresh(tokens.refresh_token), 'invalid_grant', /revoked/);
  });

  test('a code expires after codeLifetime', async () => {
    await startService({ codeLifetime: 10 });
    const [early, late] = [await codeFor(), await codeFor()];
    service.advance(9);
    expect((await exchange(early)).status).toBe(200);
    service.advance(1);
    await refused(await exchange(late), 'invalid_grant', /expired/);
  });

  test('a code is bound to its application', async () => {
    const { clientID, clientSecret } = service.register({ redirectUrls: [callback] });
    const other = { client_id: clientID, client_secret: clientSecret };
    await refused(await exchange(await codeFor(), other), 'invalid_grant', /another application/);
  });

  test('a refused attempt leaves the code alive for its own application', async () => {
    const code = await codeFor();
    await exchange(code, { client_secret: 'wrong' });
    await exchange(code, { redirect_uri: 'http://localhost:3000/other' });
    expect((await exchange(code)).status).toBe(200);
  });
});

describe('PKCE (RFC 7636)', () => {
  // The example of RFC 7636, appendix B.
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const challenge = { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' };

  test('the verifier that fits the challenge is accepted', async () => {
    const code = await codeFor('1', challenge);
    expect((await exchange(code, { code_verifier: verifier })).status).toBe(200);
  });

  test('a wrong or missing verifier is refused', async () => {
    const code = await codeFor('1', challenge);
    await refused(await exchange(code, { code_verifier: `${verifier}x` }), 'invalid_grant', /does not match/);
    await refused(await exchange(code), 'invalid_grant', /code_verifier is missing/);
    await refused(await exchange(code, { code_verifier: 7 }), 'invalid_request', /must be a string/);
  });

  test('a verifier without a challenge is refused, so that PKCE cannot be stripped (RFC 9700, 4.8.2)', async () => {
    await refused(await exchange(await codeFor(), { code_verifier: verifier }), 'invalid_grant', /no challenge/);
  });

  test.each([
    { ...challenge, code_challenge_method: 'plain' },
    { code_challenge: challenge.code_challenge },
    { code_challenge_method: 'S256' },
    { ...challenge, code_challenge: 'short' },
  ])('the challenge %j is sent back as invalid_request', async (parameters) => {
    const response = await fetch(authorizeUrl(parameters), { redirect: 'manual' });
    expect(target(response).searchParams.get('error')).toBe('invalid_request');
  });
});

describe('refresh tokens', () => {
  test('refreshTokenReuse: refuse keeps the grant when a used token comes again', async () => {
    const first = await tokensFor();
    const second = await next(first);
    await refused(await refresh(first.refresh_token), 'invalid_grant', /used already/);
    await next(second);
  });

  test('refreshTokenReuse: revoke ends the grant when an old one comes again', async () => {
    await startService({ refreshTokenReuse: 'revoke' });
    const [first, bystander] = [await tokensFor(), await tokensFor()];
    const second = await next(first);
    await refused(await refresh(first.refresh_token), 'invalid_grant', /whole grant was revoked/);
    await refused(await refresh(second.refresh_token), 'invalid_grant', /revoked/);
    expect((await projects(second.access_token)).status).toBe(401);
    await next(bystander);
  });

  test('one that has expired was used too late, not twice: the grant stays', async () => {
    await startService({ refreshTokenReuse: 'revoke', refreshTokenLifetime: 60 });
    const first = await tokensFor();
    const { access_token } = await next(first);
    service.advance(61);
    await refused(await refresh(first.refresh_token), 'invalid_grant', /has expired/);
    expect((await projects(access_token)).status).toBe(200);
  });

  test('refreshTokenReuse: grace lets the last one work once more, and no older one', async () => {
    await startService({ refreshTokenReuse: 'grace' });
    const first = await tokensFor();
    const second = await next(first);
    const third = await next(first);
    await refused(await refresh(first.refresh_token), 'invalid_grant', /used already/);
    const fourth = await next(third);
    await refused(await refresh(second.refresh_token), 'invalid_grant', /used already/);
    await next(fourth);
  });

  test.each<[string, (tokens: Tokens) => Promise<unknown>]>([
    ['access token', ({ access_token }) => projects(access_token)],
    ['refresh token', next],
  ])('refreshTokenReuse: until-used lets the old one work until the new %s is used', async (_what, use) => {
    await startService({ refreshTokenReuse: 'until-used' });
    const first = await tokensFor();
    await next(first);
    await next(first);
    expect((await projects(first.access_token)).status).toBe(200);
    const newest = await next(first);
    await use(newest);
    await refused(await refresh(first.refresh_token), 'invalid_grant', /used already/);
    await next(newest);
  });

  test('of two hundred refreshes at once, one succeeds', async () => {
    const { refresh_token } = await tokensFor();
    const responses = await Promise.all(Array.from({ length: 200 }, () => refresh(refresh_token)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('a refresh token is bound to its application', async () => {
    const { refresh_token } = await tokensFor();
    const { clientID, clientSecret } = service.register({ redirectUrls: [callback] });
    const response = await refresh(refresh_token, { client_id: clientID, client_secret: clientSecret });
    await refused(response, 'invalid_grant', /another application/);
  });

  test.each(['made-up', '1.1.made-up', '1.1', '..', '1.1.1.1', 'NaN.NaN.x'])(
    'the refresh token %j is unknown, as is an access token',
    async (made) => {
      const { access_token } = await tokensFor();
      await refused(await refresh(made), 'invalid_grant', /unknown/);
      await refused(await refresh(access_token), 'invalid_grant', /unknown/);
    },
  );
});

describe('access tokens', () => {
  test('no two are equal, even within one second', async () => {
    await startService({ clock: () => 1_700_000_000_000 });
    const first = await tokensFor();
    const second = await next(first);
    expect(second.access_token).not.toBe(first.access_token);
    expect(claimsOf(second.access_token).iat).toBe(claimsOf(first.access_token).iat);
    // The older one lives on until its own end.
    expect((await projects(first.access_token)).status).toBe(200);
  });

  test('one with another signature, another payload or no signature is refused', async () => {
    const [header, payload, signature] = (await tokensFor()).access_token.split('.');
    const forged = Buffer.from(JSON.stringify({ ...claimsOf(`.${payload}.`), sub: '2' })).toString('base64url');
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
    const others = [`${unsigned}.${payload}.`, `${header}.${payload}.AAAA`, `${header}.${payload}`];
    for (const made of [`${header}.${forged}.${signature}`, ...others]) {
      expect((await projects(made)).status).toBe(401);
    }
  });

  test('expireAccessTokens() ends all earlier tokens, and no later one', async () => {
    const [ada, ben] = [await tokensFor('1'), await tokensFor('2')];
    service.expireAccessTokens();
    for (const { access_token } of [ada, ben]) {
      const response = await projects(access_token);
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
      expect(Number(claimsOf(access_token).exp) * 1000).toBeGreaterThan(Date.now());
    }
    expect((await projects((await next(ada)).access_token)).status).toBe(200);
  });

  test('revoke() ends all grants of a user, and of no other user', async () => {
    const [one, two, ben] = [await tokensFor('1'), await tokensFor('1'), await tokensFor('2')];
    service.revoke('1');
    for (const { access_token, refresh_token } of [one, two]) {
      expect((await projects(access_token)).status).toBe(401);
      await refused(await refresh(refresh_token), 'invalid_grant', /revoked/);
    }
    expect((await projects(ben.access_token)).status).toBe(200);
    await tokensFor('1');
    expect(() => service.revoke('nobody')).toThrow(/must be the id of a user of this service, but it is 'nobody'/);
  });

  test('claims of a user are added, and replace the usual ones', async () => {
    const claims = { domain: 'evil.example/', org: { name: 'acme' } };
    await startService({ users: [{ id: '9', name: 'Nine', claims }] });
    expect(claimsOf((await tokensFor('9')).access_token)).toMatchObject({ sub: '9', ...claims });
  });

  test('addUser() changes what the next token says', async () => {
    const first = await tokensFor('2');
    service.addUser({ id: '2', name: 'Ben', domain: 'globex' });
    expect(claimsOf((await next(first)).access_token).domain).toBe('globex');
    service.addUser({ id: '3', name: 'Cleo' });
    expect(claimsOf((await tokensFor('3')).access_token).sub).toBe('3');
  });
});

describe('time and chance', () => {
  test('the clock is the one that was given', async () => {
    let now = 1_700_000_000_000;
    await startService({ clock: () => now, accessTokenLifetime: 100 });
    const { access_token } = await tokensFor();
    expect(claimsOf(access_token)).toMatchObject({ iat: 1_700_000_000, exp: 1_700_000_100 });
    now += 99_999;
    expect((await projects(access_token)).status).toBe(200);
    now += 1;
    expect((await projects(access_token)).status).toBe(401);
  });

  test('with a seed, the same requests at the same time give the same codes and tokens', async () => {
    const runs = [];
    for (const seed of ['one', 'one', 'two']) {
      await startService({ seed, clock: () => 1_700_000_000_000 });
      const code = await codeFor();
      runs.push([code, await body<Tokens>(await exchange(code)), service.register({ redirectUrls: [callback] })]);
      await service.close();
    }
    expect(JSON.stringify(runs[0])).toBe(JSON.stringify(runs[1]));
    expect(runs[0]?.[1]).not.toEqual(runs[2]?.[1]);
  });

  test('without a seed, nothing outlives the emulator', async () => {
    const { refresh_token, access_token } = await tokensFor();
    await service.close();
    await startService();
    await tokensFor();
    await refused(await refresh(refresh_token), 'invalid_grant', /unknown/);
    expect((await projects(access_token)).status).toBe(401);
  });
});

describe('the token endpoint', () => {
  test('a content type other than JSON is refused with a message that names JSON', async () => {
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/jsonp', '']) {
      await refused(await post('/oauth/token', '{}', type), 'invalid_request', /content-type: application\/json/);
    }
  });

  test.each(['', '{', '[]', 'null', '"text"', '7'])('the body %j is refused', async (text) => {
    await refused(await post('/oauth/token', text, 'application/json; charset=utf-8'), 'invalid_request', /JSON/);
  });

  test('another grant_type is refused', async () => {
    const description = /must be one of authorization_code, refresh_token/;
    await refused(await postToken({ grant_type: 'password' }), 'unsupported_grant_type', description);
  });
});

test('a redirect URL keeps the query that it has', async () => {
  const { clientID } = service.register({ redirectUrls: ['http://localhost:3000/back?tenant=7'] });
  const parameters = { client_id: clientID, redirect_uri: 'http://localhost:3000/back?tenant=7', state: 's' };
  expect(target(await decide(authorizeUrl(parameters))).href).toMatch(/\/back\?tenant=7&code=[\w-]+&state=s$/);
});
