import type { StrategyOptions } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { clock, loggedIn, logIn, open, openAtCallback, visit, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { type App, sendJson } from '../support/world.js';

const HOURS = 3_600;
const pair = (name: string) => ({
  access_token: `access-${name}`,
  token_type: 'bearer',
  expires_in: 2 * HOURS,
  refresh_token: `refresh-${name}`,
});

/** Shows what a handler is told of the scopes. */
const showScopes = (app: App) =>
  app.get('/scopes', async (req, res) => {
    const before = req.apiClient.scope;
    const { scope } = await req.apiClient.credentials();
    sendJson(res, { before, scope });
  });

const options = { routes: showScopes, strategy: { userProfile: async () => ({ id: '1' }) } };

describe('the granted scopes are', () => {
  const cases: readonly [string, unknown, readonly string[]][] = [
    ['those asked for, if the token answer has none', undefined, ['project', 'tm']],
    ['those asked for, if the token answer has rubbish', { project: true }, ['project', 'tm']],
    ['those asked for, if the token answer has names that none can have', 'pro"ject', ['project', 'tm']],
    ['those of the token answer', 'project', ['project']],
    ['those of a list, as some services send it', ['tm', 'project'], ['tm', 'project']],
    ['those of a list with commas, each once', 'project,tm,project', ['project', 'tm']],
    ['those asked for, if the token answer has an empty text', '', ['project', 'tm']],
    ['those asked for, if the token answer has an empty list', [], ['project', 'tm']],
  ];
  test.for(cases)('%s', async ([_title, scope, expected]) => {
    const callback = await openAtCallback(options);
    world.service.fail('token', { status: 200, body: { ...pair('1'), scope } });
    await visit(callback);
    const shown = await (await visit('/scopes')).json();
    expect(shown).toEqual({ before: expected, scope: expected });
  });

  test('those that the login route asks for', async () => {
    await open({ ...options, authenticate: { scope: ['glossary'], callbackURL: undefined } });
    await logIn();
    const shown = await (await visit('/scopes')).json();
    expect(shown).toEqual({ before: ['glossary'], scope: ['glossary'] });
  });

  test.for<[string, StrategyOptions['grantedScopes'], string[] | string]>([
    ['their names here', (names) => names.map((name) => name.replace('https://api.example/', '')), ['project', 'tm']],
    [
      'those that they imply, each once',
      (names) => [...names, 'tm', 'all', 'all'],
      ['https://api.example/project', 'tm', 'all'],
    ],
    ['an error, if the function returns no list', () => 'tm' as never, 'grantedScopes'],
    ['an error, if the function is async', (() => Promise.reject(new Error('down'))) as never, 'grantedScopes'],
    [
      'an error, if the function throws',
      () => {
        throw new Error('A mistake');
      },
      'grantedScopes',
    ],
  ])('by grantedScopes %s', threats(113), async ([, grantedScopes, expected]) => {
    const callback = await openAtCallback({ ...options, strategy: { ...options.strategy, grantedScopes } });
    world.service.fail('token', { status: 200, body: { ...pair('1'), scope: 'https://api.example/project tm' } });
    const { status } = await visit(callback);
    if (typeof expected === 'string') {
      expect(world.errors[0]).toMatchObject({ name: 'ConfigurationError', option: expected });
      expect(status).toBe(500);
    } else expect((await (await visit('/scopes')).json()).scope).toEqual(expected);
  });

  test('unknown of imported tokens: an empty list', async () => {
    const { strategy } = await open({ strategy: { tokenStore: memoryTokenStore() } });
    await strategy.importGrant('job', { accessToken: 'a', refreshToken: 'r', expiresAt: Date.now() + 7_200_000 });
    expect(await strategy.client('job').credentials()).toMatchObject({ scope: [] });
  });

  test('unknown of a visitor who is not logged in: an empty list', async () => {
    await open({ routes: (app) => app.get('/who', ({ apiClient }, res) => sendJson(res, apiClient.scope)) });
    expect(await (await visit('/who')).json()).toEqual([]);
  });
});

test('a refresh keeps the scopes unless its answer has others, and the events tell', async () => {
  const events = listen('login', 'refresh');
  await loggedIn(options);
  const scopesAfter = async (body: object) => {
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 200, body });
    return (await (await visit('/scopes')).json()).scope;
  };
  expect(await scopesAfter(pair('2'))).toEqual(['project', 'tm']);
  expect(await scopesAfter({ ...pair('3'), scope: 'project' })).toEqual(['project']);
  expect(await scopesAfter(pair('4'))).toEqual(['project']);
  expect(events.events.map(({ name, event }) => [name, event.scope])).toEqual([
    ['login', ['project', 'tm']],
    ['refresh', undefined],
    ['refresh', ['project']],
    ['refresh', undefined],
  ]);
});

test('each login has its own scopes', async () => {
  await open(options);
  const [first, second] = [new Browser(), new Browser()];
  await world.logIn(first);
  const callback = await world.begin(second);
  world.service.fail('token', { status: 200, body: { ...pair('1'), scope: 'project' } });
  await second.visit(callback);
  const shown = async (browser: Browser) => (await (await browser.visit(`${world.url}/scopes`)).json()).scope;
  expect([await shown(first), await shown(second)]).toEqual([['project', 'tm'], ['project']]);
});
