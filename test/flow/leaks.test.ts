import { inspect } from 'node:util';
import { ConfigurationError, Strategy } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { shownOf } from '../security/shown.js';
import { answer, type Behaviour } from '../support/faulty-server.js';
import { logIn, open, visit, world } from '../support/one-world.js';
import { openWithEndpoint } from '../support/open-with-endpoint.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import type { WorldOptions } from '../support/world.js';

type Done = (error?: unknown, user?: unknown) => void;

let tokens: string[];
const openNoting = (options?: WorldOptions) => {
  tokens = [];
  return open({
    verify: (accessToken: string, refreshToken: string, profile: { id: string }, done: Done) => {
      tokens.push(accessToken, refreshToken);
      done(null, { id: profile.id });
    },
    ...options,
    strategy: { pkce: true, ...options?.strategy },
  });
};

/** Everything that must not show: the tokens, the client secret, and what the token requests carried. */
function secrets(): string[] {
  const sent = world.tokenRequests().flatMap(({ body }) => {
    const { code, code_verifier, refresh_token } = body as Record<string, string>;
    return [code, code_verifier, refresh_token];
  });
  const all = [...tokens, ...sent, world.service.options.clientSecret];
  return all.filter((secret) => typeof secret === 'string');
}

function expectNoSecret(shown: string, hidden = secrets()): void {
  expect(hidden.length).toBeGreaterThan(0);
  for (const secret of hidden) expect(shown.includes(secret), `shows ${secret.slice(0, 6)}…`).toBe(false);
}

test('the strategy shows no secret, before and after logins', threats(23), async () => {
  await openNoting();
  expectNoSecret(shownOf(world.strategy));
  await logIn();
  expect(secrets()).toHaveLength(5);
  expectNoSecret(shownOf(world.strategy));
  expectNoSecret(shownOf(Object.create(world.strategy)));
  expectNoSecret(shownOf(world.passport));
  const { _oauth2 } = world.strategy as unknown as { _oauth2: { _clientSecret: string } };
  expect(_oauth2._clientSecret).toBe('');
});

test('a client shows no secret, and neither does a client outside of a request', threats(23), async () => {
  const shown: string[] = [];
  await openNoting({
    routes: (app) =>
      app.get('/dump', async (req, res) => {
        await req.apiClient.projects();
        shown.push(shownOf(req.apiClient), shownOf(world.strategy.client(String(req.apiClient.grantId))));
        res.end();
      }),
  });
  await logIn();
  await visit('/dump');
  expect(shown).toHaveLength(2);
  expectNoSecret(shown.join());
});

test('a whole request, its session and its store show no secret', threats(19, 23), async () => {
  const shown: string[] = [];
  await openNoting({
    routes: (app) =>
      app.get('/dump', async (req, res) => {
        await req.apiClient.projects();
        const dump = { depth: 10, showHidden: true, maxStringLength: null, maxArrayLength: null };
        shown.push(inspect(req, dump), JSON.stringify(req.session), JSON.stringify(req.headers));
        shown.push(inspect(req.sessionStore, dump), JSON.stringify(req.sessionStore));
        res.end();
      }),
  });
  await logIn();
  await visit('/dump');
  expect(shown).toHaveLength(5);
  expectNoSecret(shown.join());
});

test('no answer, header or cookie shows a secret to the browser', threats(23), async () => {
  await openNoting();
  const login = await visit('/login');
  const callback = await world.service.approve(login.headers.get('location') ?? '');
  const pages = [login, await visit(callback), await visit('/whoami')];
  expectNoSecret(inspect(pages.map(({ headers, text }) => [[...headers], text])));
});

describe('a code exchange that ends with', threats(24), () => {
  type Quote = (body: string) => Behaviour;
  const sends =
    (status: number, wrap: (body: string) => object | string, type = 'application/json'): Quote =>
    (body) => {
      const wrapped = wrap(body);
      return answer(status, { 'content-type': type }, typeof wrapped === 'string' ? wrapped : JSON.stringify(wrapped));
    };
  const ends =
    (quote: (body: string) => string): Quote =>
    (body) =>
    (socket) =>
      void socket.end(`${quote(body)}\r\n\r\n`);
  // Each answer quotes the whole request back, secrets included.
  const faults: Readonly<Record<string, readonly (readonly [string, Quote])[]>> = {
    TokenError: [
      [
        'a refusal that quotes the request',
        sends(400, (body) => ({ error: 'invalid_grant', error_description: body })),
      ],
      ['a refusal whose error is the request', sends(400, (error) => ({ error }))],
      ['a refusal whose error is the code', sends(400, (body) => ({ error: `x${JSON.parse(body).code}` }))],
    ],
    TokenResponseError: [
      ['half of it as JSON', sends(200, (body) => `{"access_token": ${body}`)],
      ['a page that quotes it', sends(200, (body) => `<p>${body}</p>`, 'text/html')],
      ['another token type, beside tokens', sends(200, (body) => ({ access_token: body, token_type: 'mac' }))],
      [
        'an access token that cannot be sent',
        sends(200, (body) => ({ access_token: `${body}\r\n`, token_type: 'bearer' })),
      ],
      [
        'a redirect that quotes it',
        (body) => answer(302, { location: `https://evil.example/${encodeURIComponent(body)}` }),
      ],
    ],
    ServiceUnavailableError: [
      ['a fault that quotes it', sends(500, (body) => body)],
      ['a header that cannot be parsed', ends((body) => `HTTP/1.1 200 OK\r\nx y: ${body}`)],
      ['a status line that cannot be parsed', ends((body) => body)],
      ['a reset', () => (socket) => void socket.resetAndDestroy()],
    ],
  };
  const cases = Object.entries(faults).flatMap(([name, quotes]) => quotes.map((quote) => [...quote, name] as const));

  test.each(cases)('%s shows no secret', async (_what, quote, name) => {
    const code = 'c0de'.repeat(12);
    const { server, callback } = await openWithEndpoint(
      (socket, request) => quote(request.body.toString())(socket, request),
      { strategy: { pkce: true } },
      code,
    );
    const page = await visit(callback);
    expect(world.errors).toMatchObject([{ name }]);
    expect(page.status).toBeGreaterThanOrEqual(500);
    const { client_secret, code_verifier } = JSON.parse(server.requests[0]?.body.toString() ?? '{}');
    const hidden = [client_secret, code_verifier, code];
    expectNoSecret(`${shownOf(world.errors)}${shownOf(world.errors[0])}${page.text}`, hidden);
    expect(stored(world)).toEqual([]);
  });
});

describe('a ConfigurationError', () => {
  const secret = 'a-secret-of-the-client-that-must-not-show';
  const options = {
    authUrl: 'https://accounts.example.com',
    baseUrl: 'https://api.example.com',
    clientID: 'id',
    clientSecret: secret,
    callbackURL: '/callback',
    scope: 'tm',
  };

  test.each([
    ['another option is wrong', { ...options, scope: 7 }],
    ['a name is misspelt', { ...options, clientsecret: secret }],
    ['a secret of a list is empty', { ...options, clientSecret: [secret, ''] }],
    ['the secret stands in an address', { ...options, authUrl: `https://x:${secret}@accounts.example.com` }],
    ['the secret stands in a query', { ...options, baseUrl: `https://api.example.com?key=${secret}` }],
    ['an encryption key is empty', { ...options, encryptionKeys: [secret, ''] }],
    ['an environment variable is not set', { ...options, clientID: undefined }],
  ])('shows no value where %s', (_what, given) => {
    try {
      new Strategy(given as never);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigurationError);
      expectNoSecret(shownOf(error), [secret]);
    }
  });
});
