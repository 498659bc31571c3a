import { describe, expect, test, vi } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { fastForward, withoutPauses } from '../support/fast-forward.js';
import { hold } from '../support/hold.js';
import { Network } from '../support/network.js';
import { browser, clock, loggedIn, projects, refreshTokens, world } from '../support/one-world.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const HOURS = 3600;

const lastRetryAfter = () => world.errors.at(-1)?.retryAfter;

describe('a token endpoint that cannot be reached', threats(36), () => {
  test('costs no request where the second connection comes about', async () => {
    const network = new Network();
    await loggedIn({ strategy: { dispatcher: network.dispatcher } });
    clock.advance(2 * HOURS);
    network.cut('ECONNREFUSED', 1);
    expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(1);
  });
});

describe('a token endpoint that fails', threats(37, 38, 39, 41), () => {
  test.each([
    ['until-used', 200, 3],
    ['refuse', 302, 2],
  ] as const)('whose answer is lost ends a login by the rule of the service: %s', async (rule, status, sent) => {
    await loggedIn({ service: { refreshTokenReuse: rule } });
    world.service.fail('token', { afterEffect: true });
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(503);
    clock.advance(31);
    expect((await withoutPauses(projects, world.service.authUrl)).status).toBe(status);
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(status);
    expect(refreshTokens()).toHaveLength(sent);
    expect(refreshTokens()[1]).toBe(refreshTokens()[0]);
  });

  test('that hangs for all requests costs each of them the time-out at most, together and not one by one', async () => {
    const arrived: unknown[] = [];
    await loggedIn({ before: (app) => app.use('/projects', (req, _res, next) => next(void arrived.push(req))) });
    clock.advance(2 * HOURS);
    world.service.fail('token', { hang: true, times: Number.POSITIVE_INFINITY });
    const all = () => Promise.all(Array.from({ length: 50 }, projects));
    const pages = await fastForward(all, () => arrived.length === 50 && world.tokenRequests().length > 0);
    expect(pages.every(({ status }) => status === 503)).toBe(true);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('is left alone for a moment that grows from 1 s to 30 s, and during it requests fail at once', async () => {
    await loggedIn();
    clock.advance(2 * HOURS);
    const takeBack = world.service.fail('token', { status: 503, times: Number.POSITIVE_INFINITY });
    for (const [tries, seconds] of [1, 2, 4, 8, 16, 30, 30].entries()) {
      expect((await projects()).status).toBe(503);
      expect(lastRetryAfter()).toBe(seconds);
      clock.advance(seconds - 0.1);
      expect((await projects()).status).toBe(503);
      expect(world.tokenRequests()).toHaveLength(tries + 1);
      clock.advance(0.2);
    }
    takeBack();
    expect((await projects()).status).toBe(200);
    expect(new Set(refreshTokens()).size).toBe(1);
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 503 });
    expect((await projects()).status).toBe(503);
    expect(lastRetryAfter()).toBe(1);
  });

  test('tells whether the call itself was sent: not before the refresh, but before the renewal after a 401', async () => {
    await loggedIn({ strategy: { tokenStore: memoryTokenStore(), grantId: () => 'ada' } });
    const client = world.strategy.client('ada');
    world.service.expireAccessTokens();
    world.service.fail('token', { status: 503 });
    const unanswered = { status: 503, retryAfter: 1, sent: true };
    await expect(client.post('/projects', { json: {} })).rejects.toMatchObject(unanswered);
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 503 });
    const unsent = { status: 503, code: 'ERR_SERVICE_UNAVAILABLE', retryAfter: 1, sent: false };
    await expect(client.projects()).rejects.toMatchObject(unsent);
    await expect(client.fetch('/projects')).rejects.toMatchObject({ sent: false });
  });

  const waits: readonly (readonly [string, number, number])[] = [
    ['5', 503, 5],
    ['5', 429, 5],
    ['0', 503, 1],
    ['31536000', 429, 3600],
    ['soon', 503, 1],
    ['-7', 429, 1],
    ['', 503, 1],
  ];

  test.each(waits)(
    'heeds Retry-After: %s with status %i for %i s, and no request sleeps for it',
    async (value, status, seconds) => {
      await loggedIn();
      clock.advance(2 * HOURS);
      world.service.fail('token', { status, headers: { 'retry-after': value } });
      expect((await projects()).status).toBe(503);
      expect(lastRetryAfter()).toBe(seconds);
      clock.advance(seconds - 0.01);
      const pages = await Promise.all(Array.from({ length: 10 }, projects));
      expect(pages.every((page) => page.status === 503)).toBe(true);
      expect(world.tokenRequests()).toHaveLength(1);
      clock.advance(0.02);
      expect((await projects()).status).toBe(200);
    },
  );

  test('and asks for a pause has it in full, though a request that was sent before succeeds', threats(79), async () => {
    await loggedIn();
    const [early, late] = [new Browser(), new Browser()];
    await world.logIn(early, '2');
    await world.logIn(late, '1');
    world.service.requests.length = 0;
    clock.advance(2 * HOURS);
    const release = hold(world.service, 'token');
    let isAnswered = false;
    const slow = early.visit(`${world.url}/projects`).finally(() => {
      isAnswered = true;
    });
    await expect.poll(() => world.tokenRequests()).toHaveLength(1);
    world.service.fail('token', { status: 429, headers: { 'retry-after': '9' } });
    expect((await projects()).status).toBe(503);
    expect(isAnswered).toBe(false);
    release();
    expect((await slow).status).toBe(200);
    clock.advance(8.9);
    for (const one of [late, browser]) expect((await one.visit(`${world.url}/projects`)).status).toBe(503);
    expect(world.tokenRequests()).toHaveLength(2);
    clock.advance(0.2);
    for (const one of [late, browser]) expect((await one.visit(`${world.url}/projects`)).status).toBe(200);
  });

  test.for([
    ['tries once more by itself, so that a service which accepts the former token for a minute loses no login', true],
    ['sends nothing by itself if another process has refreshed the grant since', false],
  ] as const)('whose answer is lost %s', threats(111), async ([, isFirst]) => {
    const shared = { tokenStore: memoryTokenStore(), grantId: () => 'job' };
    await loggedIn({ service: { refreshTokenReuse: 'grace' }, strategy: shared });
    const events = listen('refresh');
    clock.advance(2 * HOURS);
    world.service.requests.length = 0;
    stopTime();
    world.service.fail('token', { afterEffect: true });
    expect((await projects()).status).toBe(503);
    const other = await another({ strategy: shared });
    if (!isFirst) await other.strategy.client('job').projects();
    clock.advance(1);
    await vi.advanceTimersByTimeAsync(1_000);
    await until(() => expect(events.values('refresh', 'outcome')).toHaveLength(isFirst ? 2 : 3));
    const triggers = ['expired', ...(isFirst ? [] : ['expired']), 'retry'];
    expect(events.values('refresh', 'trigger')).toEqual(triggers);
    expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(2);
  });

  test('for this process alone does not keep it from what another one has got', async () => {
    const network = new Network();
    const tokenStore = memoryTokenStore();
    const shared = { tokenStore, grantId: () => 'shared' };
    await loggedIn({ strategy: { ...shared, dispatcher: network.dispatcher } });
    const other = await another({ strategy: shared });
    clock.advance(2 * HOURS);
    network.cut('ECONNREFUSED', 2);
    await expect(world.strategy.client('shared').accessToken()).rejects.toMatchObject({ status: 503 });
    const token = await other.strategy.client('shared').accessToken();
    expect(await world.strategy.client('shared').accessToken()).toBe(token);
    expect(world.tokenRequests()).toHaveLength(1);
  });
});
