import type { StrategyOptions } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import {
  browser,
  clock,
  loggedIn,
  logIn,
  open,
  projects,
  refused,
  warnings,
  whoami,
  world,
} from '../support/one-world.js';
import { threats } from '../support/threats.js';

const EXPIRED_S = 7201;

type Refusal = Parameters<NonNullable<StrategyOptions['endsGrant']>>[0];

describe('a dead refresh token that is refused by other words than invalid_grant', threats(88), () => {
  test.for<[string, Record<string, unknown>, Refusal]>([
    [
      'invalid_request',
      { error: 'invalid_request', error_description: 'The refresh token is invalid.' },
      { error: 'invalid_request', description: 'The refresh token is invalid.', status: 400 },
    ],
    ['expired_token', { error: 'expired_token' }, { error: 'expired_token', description: undefined, status: 400 }],
    [
      'words in other fields (Twitch)',
      { error: 'Bad Request', status: 400, message: 'Invalid refresh token' },
      { error: 'Bad Request', description: 'Invalid refresh token', status: 400 },
    ],
    [
      'words with no error (HubSpot)',
      { status: 'BAD_REFRESH_TOKEN', message: 'missing or invalid refresh token' },
      { error: 'BAD_REFRESH_TOKEN', description: 'missing or invalid refresh token', status: 400 },
    ],
  ])('%s: endsGrant is asked, and the user has to log in again', async ([, refreshRefusal, words]) => {
    const asked: Refusal[] = [];
    const endsGrant = (refusal: Refusal) => asked.push(refusal) > 0;
    await loggedIn({ service: { profile: { refreshRefusal } }, strategy: { endsGrant } });
    world.service.revoke('1');
    clock.advance(EXPIRED_S);
    expect((await refused(projects)).status).toBe(302);
    expect((await whoami()).authorized).toBe(false);
    expect(world.grantKeys()).toEqual([]);
    expect(asked).toEqual([words]);
    await projects();
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('without endsGrant the grant is kept; the error names the option, and a repeated refusal is reported once', async () => {
    const told = warnings('ERR_REFRESH_REFUSED');
    const refreshRefusal = { error: 'invalid_request', error_description: 'No such token' };
    await loggedIn({ service: { profile: { refreshRefusal } } });
    world.service.revoke('1');
    clock.advance(EXPIRED_S);
    expect((await refused(projects)).status).toBe(502);
    const message = expect.stringContaining('set the option endsGrant');
    expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_request', message });
    expect(told).toEqual([]);
    for (let time = 0; time < 3; time++) await projects();
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringMatching(/status 400 and the words "invalid_request: No such token".*endsGrant/),
    ]);
    expect((await whoami()).authorized).toBe(true);
  });

  test('a refusal of the client says nothing of the refresh token', async () => {
    const told = warnings('ERR_REFRESH_REFUSED');
    await loggedIn();
    clock.advance(EXPIRED_S);
    for (let time = 0; time < 3; time++) {
      world.service.fail('token', { status: 400, body: { error: 'unauthorized_client' } });
      expect((await projects()).status).toBe(502);
    }
    expect(told).toEqual([]);
    expect(world.errors.at(-1)?.message).not.toContain('endsGrant');
  });

  test('endsGrant decides about invalid_grant too, and one that throws keeps the grant', async () => {
    let endsGrant: () => boolean = () => false;
    await loggedIn({ strategy: { endsGrant: () => endsGrant() } });
    world.service.revoke('1');
    clock.advance(EXPIRED_S);
    expect((await refused(projects)).status).toBe(502);
    expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_grant' });
    endsGrant = () => {
      throw new Error('a mistake');
    };
    expect((await projects()).status).toBe(500);
    expect(world.errors.at(-1)).toMatchObject({ name: 'ConfigurationError', option: 'endsGrant' });
    expect((await whoami()).authorized).toBe(true);
    endsGrant = () => true;
    expect((await refused(projects)).status).toBe(302);
  });
});

describe('a service that does not accept the client', threats(40), () => {
  test.for<[string, unknown]>([
    ['an OAuth error', { error: 'invalid_client' }],
    ['a text, as Passport sends it', 'Unauthorized'],
  ])(
    'and says so by %s is asked by one refresh after each growing pause, whatever the grants; a right secret is noticed in two seconds',
    async ([, body]) => {
      await loggedIn();
      const browsers = [browser, new Browser(), new Browser()];
      for (const other of browsers.slice(1)) await world.logIn(other, '2');
      world.service.requests.length = 0;
      clock.advance(EXPIRED_S);
      const heal = world.service.fail('token', { status: 401, body, times: Number.POSITIVE_INFINITY });
      const visitAll = () => Promise.all(browsers.map((one) => one.visit(`${world.url}/projects`)));
      await projects();
      const sent: number[] = [];
      for (const seconds of [0, 0, 0.25, 0.25, 0.5, 0.5, 0.5, 1, 1.5, 1.5]) {
        clock.advance(seconds);
        expect((await visitAll()).map(({ status }) => status)).toEqual([502, 502, 502]);
        expect(world.errors.at(-1)).toMatchObject({ name: 'TokenError', error: 'invalid_client' });
        sent.push(world.tokenRequests().length);
      }
      expect(sent).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 6]);
      heal();
      clock.advance(1.999);
      expect((await projects()).status).toBe(200);
      expect((await visitAll()).map(({ status }) => status)).toEqual([200, 200, 200]);
    },
  );

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
