import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import type { ErrorRequestHandler } from 'express';
import { oauthErrors, type StrategyOptions } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { withoutPauses } from '../support/fast-forward.js';
import { answer, json, startFaultyServer } from '../support/faulty-server.js';
import { browser, clock, loggedIn, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { grantKeys } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { warnings } from '../support/warnings.js';
import type { App, WorldOptions } from '../support/world.js';

const EXPIRED_S = 7201;

type Refusal = Parameters<NonNullable<StrategyOptions['endsGrant']>>[0];

const accessToken = `e30.${Buffer.from('{"sub":"1"}').toString('base64url')}.x`;
const TOKENS = { access_token: accessToken, token_type: 'bearer', expires_in: 7200, refresh_token: 'the-refresh' };

/** A token endpoint of another service, which first answers a code with tokens. */
async function loggedInAt(strategy: Partial<StrategyOptions> = {}, options: WorldOptions = {}) {
  const server = await startFaultyServer();
  onTestFinished(() => server.close());
  server.next(json(TOKENS));
  await loggedIn({ ...options, strategy: { tokenPath: `${server.origin}/token`, ...strategy } });
  clock.advance(EXPIRED_S);
  const page = () => withoutPauses(projects, server.origin);
  const script = () =>
    withoutPauses(() => visit('/projects', { headers: { accept: 'application/json' } }), server.origin);
  return { server, page, script };
}

const parsed = (text: string): unknown => (/^[[{"]/.test(text) ? JSON.parse(text) : text);

/** The rows of the table in docs/figures/refusals.md. */
const SHAPES = readFileSync(new URL('../../docs/figures/refusals.md', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => /^\| .* \| [234]\d\d \|/.test(line))
  .map((line) => {
    const [what = '', status, ...cells] = line.slice(2, -2).split(' | ');
    const [body = '', error, description] = cells.map((cell) => (/^`(.*)`$/.exec(cell) ?? [])[1]);
    const [shown, ends] = [parsed(body), cells.at(-1) === 'ends'];
    return { what, status: Number(status), headers: {}, body, shown, error, description, ends };
  });

/** Shapes that are shown in part. */
const HIDDEN = [
  { what: 'A body over 1 MiB', status: 400, headers: {}, body: 'y'.repeat(1_048_577), shown: '' },
  { what: 'A damaged encoding', status: 400, headers: { 'content-encoding': 'gzip' }, body: 'x', shown: '' },
  { what: 'A bad token', status: 200, headers: {}, body: '{"access_token":"a b"}', shown: { access_token: '[…]' } },
].map((shape) => ({ ...shape, error: undefined, description: undefined, ends: false }));

describe('a refresh that is refused in the shape of', threats(88, 109), () => {
  test('24 kinds, which docs/figures/refusals.md lists', () => {
    expect(SHAPES).toHaveLength(24);
  });

  describe.for([...SHAPES, ...HIDDEN])('$what', ({ status, headers, body, shown, error, description, ends }) => {
    const behaviour = answer(status, { 'content-type': 'text/plain', location: '/elsewhere', ...headers }, body);
    const refusal = { error, description, status, body: shown };

    test('is shown to endsGrant, which may end the grant', async () => {
      const asked: Refusal[] = [];
      const { server, page } = await loggedInAt({ endsGrant: (refusal) => asked.push(refusal) > 0 });
      server.always(behaviour);
      expect((await page()).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
      expect(asked).toEqual([refusal]);
      expect(grantKeys(world)).toEqual([]);
    });

    test(ends ? 'ends the grant' : 'keeps the grant, leads the user to the login, and is reported once', async () => {
      const told = warnings('ERR_REFRESH_REFUSED');
      const { server, page, script } = await loggedInAt();
      server.always(behaviour);
      expect((await script()).json()).toMatchObject(
        ends ? { name: 'NotAuthorizedError' } : { name: 'TokenError', code: 'ERR_TOKEN_REFUSED' },
      );
      expect((await page()).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
      expect((await whoami()).authorized).toBe(!ends);
      for (let time = 0; time < 2; time++) {
        clock.advance(31);
        await script();
      }
      expect(told).toHaveLength(ends ? 0 : 1);
      if (ends) return;
      expect(told[0]?.message).toContain(`status ${status}`);
      const [, condition] = /\) => (.*)$/.exec(told[0]?.message ?? '') ?? [];
      const endsGrant = new Function('{ error, description, status, body }', `return ${condition}`);
      expect(endsGrant(refusal)).toBe(true);
      expect(endsGrant({ error: 'temporarily_unavailable', description: undefined, status: 418, body: {} })).toBe(
        false,
      );
    });
  });

  test('an echo: nothing that was sent comes back to the application or its log', async () => {
    const told = warnings('ERR_REFRESH_REFUSED');
    const asked: Refusal[] = [];
    for (const endsGrant of [undefined, (refusal: Refusal) => asked.push(refusal) < 0]) {
      const { server, script } = await loggedInAt({ endsGrant, clientAuthentication: 'basic' });
      for (const before of ['', '<p>', '{"error":"no","sent":']) {
        server.always((socket, { body, headers }) => {
          const echo = `${body} ${headers.authorization} ${Buffer.from('the-refresh').toString('base64')}`;
          answer(
            400,
            {},
            before + (before.startsWith('{') ? `${JSON.stringify(echo)}}` : echo),
          )(socket, server.requests[0] as never);
        });
        clock.advance(31);
        await script();
        const credentials = Buffer.from(
          server.requests.at(-1)?.headers.authorization?.slice(6) ?? '',
          'base64',
        ).toString();
        const [, secret = ''] = credentials.split(':');
        expect(secret).not.toBe('');
        for (const shown of [asked, told, world.errors.map(({ message }) => message)]) {
          const text = inspect(shown, { depth: 9 });
          for (const sent of ['the-refresh', secret, credentials])
            for (const form of [sent, Buffer.from(sent).toString('base64url')]) expect(text).not.toContain(form);
        }
      }
    }
    expect(asked.map(({ body }) => body)).toEqual([
      expect.stringContaining('refresh_token'),
      expect.stringContaining('refresh_token'),
      { error: 'no', sent: expect.stringContaining('Basic') },
    ]);
  });

  test.for<[what: string, change: object]>([
    ['another token_type', { token_type: 'mac' }],
    ['a domain of two labels', { access_token: `e30.${Buffer.from('{"domain":"a.b"}').toString('base64url')}.x` }],
    ['a refresh_token that is an object', { refresh_token: {} }],
    ['no access_token', { access_token: undefined }],
  ])('tokens that are of no use, for %s: not shown to endsGrant, and a page goes to the login', async ([, change]) => {
    const { server, page, script } = await loggedInAt({ endsGrant: () => expect.unreachable() });
    server.always(json({ ...TOKENS, ...change }));
    expect((await page()).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
    expect((await script()).json()).toMatchObject({ name: 'TokenResponseError' });
    expect((await whoami()).authorized).toBe(true);
  });

  test('any: a login replaces the grant, and leads back; where the new token is refused as well, the rounds end', async () => {
    const routes = (app: App) => void app.use(oauthErrors({ login: '/login' }) as ErrorRequestHandler);
    const { server, page } = await loggedInAt({}, { routes });
    const [before] = grantKeys(world);
    // The emulator's API refuses the tokens of this server, too.
    server.always((socket, { body }) => {
      const isRefresh = body.includes('"refresh_token"');
      (isRefresh ? json({ error: 'invalid_request' }, 400) : json(TOKENS))(socket, server.requests[0] as never);
    });
    const rounds: unknown[] = [];
    for (let next = await page(); next.status === 302 && rounds.length < 9; next = await page()) {
      const login = next.headers.get('location') ?? '';
      const callback = await visit(await world.begin(browser, {}, login));
      rounds.push(callback.headers.get('location') ?? callback.text);
      // The former grant is deleted after the answer.
      await expect.poll(() => grantKeys(world)).not.toContain(before);
      if (callback.status !== 302) break;
    }
    expect(rounds).toEqual(['/projects', '/projects', expect.stringMatching(/^ERR_LOGIN_LOOP: /)]);
  });
});

describe('a refusal of the client', () => {
  test('in GitHub’s word, with status 200, is no refusal of the grant: a page gets the error', async () => {
    const { server, page } = await loggedInAt();
    server.always(json({ error: 'incorrect_client_credentials' }));
    expect((await page()).json()).toMatchObject({ name: 'TokenError', code: 'ERR_TOKEN_REFUSED' });
    expect(world.errors.at(-1)).toMatchObject({ error: 'invalid_client' });
  });

  test('a refusal of the client says nothing of the refresh token', async () => {
    const told = warnings('ERR_REFRESH_REFUSED');
    await loggedIn();
    clock.advance(EXPIRED_S);
    for (let time = 0; time < 3; time++) {
      world.service.fail('token', { status: 400, body: { error: 'unauthorized_client' } });
      expect((await visit('/projects', { headers: { accept: 'application/json' } })).status).toBe(502);
      clock.advance(5);
    }
    expect(told).toEqual([]);
    expect(world.errors.at(-1)?.message).not.toContain('endsGrant');
  });

  test('endsGrant decides about invalid_grant too, and one that throws or is async keeps the grant', async () => {
    let endsGrant: () => boolean = () => false;
    await loggedIn({ strategy: { endsGrant: () => endsGrant() } });
    world.service.revoke('1');
    clock.advance(EXPIRED_S);
    expect((await projects()).status).toBe(302);
    const script = { headers: { accept: 'application/json' } };
    expect((await visit('/projects', script)).status).toBe(502);
    expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_grant' });
    const fail = () => {
      throw new Error('a mistake');
    };
    for (const wrong of [fail, async () => false, async () => fail()]) {
      clock.advance(31);
      endsGrant = wrong as typeof fail;
      expect((await projects()).status).toBe(500);
      expect(world.errors.at(-1)).toMatchObject({ name: 'ConfigurationError', option: 'endsGrant' });
      expect((await whoami()).authorized).toBe(true);
    }
    endsGrant = () => true;
    expect((await withoutPauses(projects, world.service.authUrl)).status).toBe(302);
  });
});

test('a refused grant pauses for 1 s to 30 s, or as long as the service asks; a new login ends the pause', async () => {
  await loggedIn();
  const script = () => visit('/projects', { headers: { accept: 'application/json' } });
  const other = new Browser();
  await world.logIn(other, '2');
  clock.advance(EXPIRED_S);
  world.service.requests.length = 0;
  const body = { error: 'invalid_request' };
  const stop = world.service.fail('token', { status: 400, body, times: Number.POSITIVE_INFINITY });
  for (const [index, seconds] of [1, 2, 4, 8, 16, 30, 30].entries()) {
    for (let call = 0; call < 20; call++) expect((await script()).status).toBe(502);
    expect(world.tokenRequests()).toHaveLength(index + 1);
    expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_request' });
    clock.advance(seconds);
  }
  stop();
  // Its body, which is not in gzip, does not matter.
  const headers = { 'retry-after': '1800', 'content-encoding': 'gzip' };
  world.service.fail('token', { status: 403, body, headers });
  expect((await script()).status).toBe(502);
  // The others go on.
  expect((await other.visit(`${world.url}/projects`)).status).toBe(200);
  clock.advance(1_799);
  expect((await script()).status).toBe(502);
  expect((await logIn()).status).toBe(302);
  expect((await projects()).status).toBe(200);
});

test('a refresh that comes too early is not repeated for that token, and advises nothing', async () => {
  const told = warnings('ERR_REFRESH_REFUSED');
  await loggedIn();
  world.service.requests.length = 0;
  const body = { error: 'invalid_request', error_description: 'access_token not expired' };
  const stop = world.service.fail('token', { status: 400, body, times: Number.POSITIVE_INFINITY });
  for (const seconds of [EXPIRED_S - 250, 100, 100, 40]) {
    clock.advance(seconds);
    for (let call = 0; call < 3; call++) expect((await projects()).status).toBe(200);
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
  }
  stop();
  clock.advance(10);
  expect((await projects()).status).toBe(200);
  expect([world.tokenRequests().length, told]).toEqual([2, []]);
});

describe('a service that does not accept the client', threats(40), () => {
  test('pauses one grant first, and all grants at the second in a row; a right secret is noticed in two seconds', async () => {
    await loggedIn();
    const browsers = [browser, new Browser(), new Browser()];
    for (const other of browsers.slice(1)) await world.logIn(other, '2');
    world.service.requests.length = 0;
    clock.advance(EXPIRED_S);
    const client = { status: 401, body: { error: 'invalid_client' } };
    world.service.fail('token', client);
    const [, second = browser] = browsers;
    expect((await projects()).status).toBe(502);
    // One grant may be at fault: the next one is not kept waiting, and its success ends the pause.
    expect((await second.visit(`${world.url}/projects`)).status).toBe(200);
    expect((await projects()).status).toBe(200);
    clock.advance(EXPIRED_S);
    world.service.requests.length = 0;
    const heal = world.service.fail('token', { ...client, times: Number.POSITIVE_INFINITY });
    const visitAll = () => Promise.all(browsers.map((one) => one.visit(`${world.url}/projects`)));
    await projects();
    await second.visit(`${world.url}/projects`);
    const sent: number[] = [];
    for (const seconds of [0, 0, 0.25, 0.25, 0.5, 0.5, 0.5, 1, 1.5, 1.5]) {
      clock.advance(seconds);
      expect((await visitAll()).map(({ status }) => status)).toEqual([502, 502, 502]);
      expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_client' });
      sent.push(world.tokenRequests().length);
    }
    expect(sent).toEqual([2, 2, 3, 3, 4, 4, 5, 5, 6, 7]);
    heal();
    clock.advance(1.999);
    expect((await projects()).status).toBe(200);
    expect((await visitAll()).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('pauses all grants where it refuses a login, once the secret was changed', async () => {
    await loggedIn();
    clock.advance(EXPIRED_S);
    world.service.fail('token', { status: 401, body: { error: 'invalid_client' }, times: 2 });
    expect((await world.logIn(new Browser(), '2')).status).toBe(502);
    expect((await projects()).status).toBe(502);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('a login asks it at once, and its success ends the pause', async () => {
    await loggedIn();
    clock.advance(EXPIRED_S);
    world.service.fail('token', { status: 401, body: { error: 'invalid_client' } });
    expect((await projects()).status).toBe(502);
    expect((await projects()).status).toBe(502);
    expect((await world.logIn(new Browser(), '2')).status).toBe(302);
    expect((await projects()).status).toBe(200);
  });
});

describe('client credentials in the Authorization header', threats(88), () => {
  const clientSecret = 'a+b/c=d~e%f:g ü';
  const applications = [{ clientID: 'id', clientSecret, redirectUrls: ['http://127.0.0.1/callback'] }];

  test.for<['basic' | 'basic-raw', boolean]>([
    ['basic', true],
    ['basic-raw', true],
    ['basic', false],
    ['basic-raw', false],
  ])('%s, where the service reads them in that way: %s', async ([clientAuthentication, isSame]) => {
    const other = clientAuthentication === 'basic' ? 'basic-raw' : 'basic';
    await open({
      service: { applications, profile: { clientAuthentication: isSame ? clientAuthentication : other } },
      strategy: { clientAuthentication },
    });
    expect((await logIn()).status).toBe(isSame ? 302 : 502);
    if (isSame) return;
    expect(world.errors.at(-1)?.message).toMatch(/invalid_client.*'basic' form-encodes.*'basic-raw' does not/);
  });

  test('basic-raw refuses a client ID with a colon, which would end there', async () => {
    const strategy = { clientAuthentication: 'basic-raw', clientID: 'a:b' } as const;
    await expect(open({ strategy })).rejects.toMatchObject({ name: 'ConfigurationError', option: 'clientID' });
  });

  test('a secret of letters and digits is the same in both: the message names neither', async () => {
    await open({
      service: { profile: { clientAuthentication: 'basic' } },
      strategy: { clientSecret: 'wrong', clientID: 'sample' },
    });
    world.service.register({ clientID: 'sample', clientSecret: 'right', redirectUrls: [`${world.url}/callback`] });
    expect((await world.logIn(browser)).status).toBe(502);
    expect(world.errors.at(-1)?.message).toMatch(/invalid_client(?!.*basic-raw)/);
  });
});
