import { type GrantSummary, memoryTokenStore, Strategy, type StrategyOptions } from 'passport-oauth-app';
import type { Emulator } from 'passport-oauth-app/emulator';
import { crowdinAgent, crowdinApp } from 'passport-oauth-app/providers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { browser, open } from '../support/one-world.js';
import { stopTime } from '../support/stop-time.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { withoutLock } from '../support/without-lock.js';

type ApplicationGrant = NonNullable<StrategyOptions['applicationGrant']>;

const HOURS = 3600;

/** A strategy of the service, with a clock that the test moves. */
function strategyOf(service: Emulator, applicationGrant: ApplicationGrant, options: Partial<StrategyOptions> = {}) {
  const clock = new TestClock();
  const tokenStore = options.tokenStore ?? memoryTokenStore();
  const usual = { callbackURL: '/callback', scope: 'project', clock: clock.now, tokenStore };
  const strategy = new Strategy({ ...service.options, ...usual, applicationGrant, ...options });
  onTestFinished(() => strategy.close());
  const advance = (seconds: number) => {
    clock.advance(seconds);
    service.advance(seconds);
  };
  return { strategy, tokenStore, advance };
}

const bodies = (service: Emulator) =>
  service.requests.flatMap(({ path, body }) => (path === '/oauth/token' ? [body as Record<string, unknown>] : []));
const machine: ApplicationGrant = (id) =>
  id.startsWith('machine') ? { grant_type: 'client_credentials', scope: 'project' } : undefined;

describe('a grant of the application', threats(86), () => {
  test('gets its token at first use, with the client and no login, and keeps no refresh token and no parameters', async () => {
    const { service } = await open({ service: { users: [{ id: '1', name: 'Ada', tokenFields: {} }] } });
    const { strategy, tokenStore } = strategyOf(service, machine);
    const client = strategy.client('machine');
    expect(await client.projects()).toMatchObject({ data: [] });
    await client.projects();
    const { clientID: client_id, clientSecret: client_secret } = service.options;
    expect(bodies(service)).toEqual([{ grant_type: 'client_credentials', client_id, client_secret, scope: 'project' }]);
    const { sealed = '' } = (await tokenStore.get(storeId(service.options, 'machine'))) ?? {};
    const record = Buffer.from(sealed, 'base64url').toString();
    expect(record).toContain('accessToken');
    expect(record).not.toMatch(/refreshToken|client_credentials|grant_type/);
  });

  test('asks again ahead of its end, at its end and after a 401, with parameters that are new each time', async () => {
    const { service } = await open();
    let asked = 0;
    const { strategy, advance } = strategyOf(service, () => ({
      grant_type: 'client_credentials',
      client_assertion: `assertion-${++asked}`,
    }));
    const client = strategy.client('any');
    const events = listen('refresh');
    await client.projects();
    advance(2 * HOURS - 200);
    await client.projects();
    await expect.poll(() => events.values('refresh', 'outcome').length).toBe(2);
    advance(3 * HOURS);
    await client.projects();
    service.expireAccessTokens();
    await client.projects();
    expect(bodies(service).map(({ client_assertion }) => client_assertion)).toEqual([
      ...['assertion-1', 'assertion-2', 'assertion-3', 'assertion-4'],
    ]);
    expect(events.values('refresh', 'trigger')).toEqual(['expired', 'ahead', 'expired', 'refused']);
    expect(events.values('refresh', 'outcome')).toEqual(['refreshed', 'refreshed', 'refreshed', 'refreshed']);
  });

  test('makes one token request for a hundred calls at once, and calls the function once', async () => {
    const { service } = await open();
    let asked = 0;
    const { strategy } = strategyOf(service, (id) => {
      asked += 1;
      return machine(id);
    });
    const clients = Array.from({ length: 100 }, () => strategy.client('machine'));
    await Promise.all(clients.map((client) => client.projects()));
    expect([bodies(service).length, asked]).toEqual([1, 1]);
  });

  test('leaves the ids of users to their logins', async () => {
    const tokenStore = memoryTokenStore();
    const grantId = (_req: unknown, user: object) => String(Reflect.get(user, 'id'));
    const world = await open({ strategy: { tokenStore, grantId, applicationGrant: machine } });
    await expect(world.strategy.client('1').projects()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
    expect(world.tokenRequests()).toEqual([]);
    await world.logIn(browser, '1');
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    // Without a refresh token it ends with its access token, and not before.
    await world.strategy.importGrant('imported', { accessToken: await world.strategy.client('1').accessToken() });
    world.service.requests.length = 0;
    await world.strategy.client('imported').projects();
    world.service.expireAccessTokens();
    await expect(world.strategy.client('imported').projects()).rejects.toMatchObject({ status: 401 });
    expect(world.tokenRequests()).toEqual([]);
  });

  test('is never that of a user, though the ids are equal', threats(106), async () => {
    let id = '1';
    const applicationGrant: ApplicationGrant = (grantId) => machine(grantId === '2' ? 'machine' : 'user');
    const strategy = { tokenStore: memoryTokenStore(), grantId: () => id, applicationGrant };
    const world = await open({ strategy });
    const token = await world.strategy.client('2').accessToken();
    await world.logIn(browser, '1');
    id = '2';
    expect((await world.logIn(new Browser(), '2')).status).toBe(500);
    expect(world.errors.at(-1)).toMatchObject({ name: 'ConfigurationError', code: 'ERR_APPLICATION_GRANT' });
    expect((await browser.visit(`${world.url}/whoami`)).json()).toMatchObject({ authorized: false });
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(302);
    expect((await browser.visit(`${world.url}/logout`, { method: 'POST' })).status).toBe(200);
    const { code = '' } = world.service.install({ userId: '2', authentication: 'authorization_code' });
    for (const imported of [
      world.strategy.importGrant('2', { refreshToken: 'r' }),
      world.strategy.importCode(() => '2', code),
    ])
      await expect(imported).rejects.toMatchObject({ code: 'ERR_APPLICATION_GRANT' });
    const requests = world.tokenRequests().length;
    expect(await world.strategy.client('2').accessToken()).toBe(token);
    await world.strategy.deleteGrant('2');
    expect(world.tokenRequests()).toHaveLength(requests);
  });

  test('is kept, and tried again, where the service refuses it: a TokenError that quotes none of its parameters', async () => {
    const { service } = await open();
    const secret = 'assertion-that-nobody-may-see';
    const { strategy, advance } = strategyOf(service, () => ({
      grant_type: 'client_credentials',
      client_assertion: secret,
    }));
    const body = { error: 'invalid_grant', error_description: `not ${secret}` };
    service.fail('token', { status: 400, body });
    const error: unknown = await strategy
      .client('any')
      .projects()
      .catch((reason) => reason);
    expect(error).toMatchObject({ name: 'TokenError', error: 'invalid_grant', strategy: 'oauth-app' });
    expect(String(error)).not.toContain(secret);
    advance(1);
    await strategy.client('any').projects();
    expect(bodies(service)).toHaveLength(2);
  });

  test('waits out an outage of the token endpoint, as a refresh does', async () => {
    const { service } = await open();
    const { strategy, advance } = strategyOf(service, machine);
    service.fail('token', { status: 503, times: 1 });
    for (let call = 0; call < 3; call++)
      await expect(strategy.client('machine').projects()).rejects.toMatchObject({ status: 503 });
    expect(bodies(service)).toHaveLength(1);
    advance(60);
    await strategy.client('machine').projects();
  });

  test.for<[string, object, object, number[]]>([
    ['a refusal', { status: 400, body: { error: 'invalid_scope' } }, { error: 'invalid_scope' }, [1, 2, 4, 8, 16, 30]],
    ['an answer that is unusable', { status: 200, body: 'no JSON' }, { name: 'TokenResponseError' }, [1, 2, 4]],
    ['a 503', { status: 503 }, { status: 503 }, [1, 2, 4]],
    ['a 429 with Retry-After', { status: 429, headers: { 'Retry-After': '20' } }, { status: 503 }, [20, 20]],
  ])(
    'asks once more after %s when a pause is over, which grows, however many calls a job makes',
    async ([, fault, expected, pausesS]) => {
      const { service } = await open();
      const { strategy, advance } = strategyOf(service, machine);
      const busy = async () => {
        for (let call = 0; call < 5; call++)
          await expect(strategy.client('machine').projects()).rejects.toMatchObject(expected);
      };
      service.fail('token', { ...fault, times: 100 });
      for (const [index, seconds] of pausesS.entries()) {
        await busy();
        expect(bodies(service)).toHaveLength(index + 1);
        advance(seconds - 0.1);
        await busy();
        expect(bodies(service)).toHaveLength(index + 1);
        advance(0.1);
      }
    },
  );

  test('is used from memory while its first token cannot be saved, and saved later, over no other grant', async () => {
    const { service } = await open();
    const tokenStore = new TroubledStore();
    const { strategy } = strategyOf(service, machine, { tokenStore, revocationPath: '/oauth/revoke' });
    const events = listen('refresh');
    tokenStore.fail('set', 'add', 'update');
    const token = await strategy.client('machine').accessToken();
    await strategy.client('machine-2').accessToken();
    const outcomes = () => events.values('refresh', 'outcome');
    expect([outcomes(), await strategy.client('machine').accessToken()]).toEqual([['unsaved', 'unsaved'], token]);
    tokenStore.recover();
    const imported = { accessToken: 'imported', expiresAt: Date.now() + 7_200_000 };
    const id = storeId(service.options, 'machine-2');
    await strategyOf(service, () => undefined, { tokenStore }).strategy.importGrant('machine-2', imported);
    await expect.poll(() => outcomes().slice(2).toSorted()).toEqual(['discarded', 'saved']);
    const { sealed = '' } = (await tokenStore.inner.get(id)) ?? {};
    expect(Buffer.from(sealed, 'base64url').toString()).toContain('"imported"');
    const another = strategyOf(service, machine, { tokenStore });
    expect(await another.strategy.client('machine').accessToken()).toBe(token);
    expect(bodies(service).map(({ grant_type }) => grant_type)).toEqual(['client_credentials', 'client_credentials']);
  });

  test.for<[string, boolean]>([
    ['in a session store, which compares nothing', false],
    ['when its save has reached the store, and the answer was lost', true],
  ])('is saved later %s', async ([, isAnswerLost]) => {
    const { service } = await open();
    const store = new TroubledStore();
    const tokenStore = isAnswerLost ? store : withoutLock(store);
    const { strategy } = strategyOf(service, machine, { tokenStore });
    const events = listen('refresh');
    const { add } = store.inner;
    const addAndFail: typeof add = async (...args) => {
      await add(...args);
      throw new Error('The answer was lost');
    };
    if (isAnswerLost) store.inner.add = addAndFail;
    else store.fail('set');
    const token = await strategy.client('machine').accessToken();
    store.inner.add = add;
    store.recover();
    await expect.poll(() => events.values('refresh', 'outcome')).toEqual(['unsaved', 'saved']);
    expect(await strategyOf(service, machine, { tokenStore }).strategy.client('machine').accessToken()).toBe(token);
  });

  test('is saved later though it was asked for again meanwhile', async () => {
    stopTime();
    const { service } = await open();
    const tokenStore = new TroubledStore();
    const [leaseMs, { lock }] = [10_000, tokenStore];
    tokenStore.lock = (id, work) => lock(id, () => work({ ageMs: 0, isHeld: async () => true, leaseMs }));
    const { strategy, advance } = strategyOf(service, machine, { tokenStore });
    tokenStore.fail('set', 'add', 'update');
    await strategy.client('machine').accessToken();
    advance(2 * HOURS);
    const renewed = strategy.client('machine').accessToken();
    await until(() => expect(tokenStore.calls.filter((call) => call === 'lock')).toHaveLength(2));
    await vi.advanceTimersByTimeAsync(leaseMs);
    const token = await renewed;
    tokenStore.recover();
    await until(async () => expect(await strategy.grant('machine')).toBeDefined());
    await strategy.close();
    const { sealed = '' } = (await tokenStore.get(storeId(service.options, 'machine'))) ?? {};
    expect(Buffer.from(sealed, 'base64url').toString()).toContain(token);
    expect(bodies(service)).toHaveLength(2);
  });

  test('takes the place of what is left of the grant of a user that has ended', async () => {
    const { service } = await open();
    let isMachine = false;
    const { strategy } = strategyOf(service, (id) => (isMachine ? machine(id) : undefined));
    await strategy.importGrant('machine', { refreshToken: 'dead' });
    await expect(strategy.client('machine').accessToken()).rejects.toMatchObject({ status: 401 });
    isMachine = true;
    expect(await strategy.client('machine').projects()).toMatchObject({ data: [] });
    expect(await strategy.grant('machine')).toMatchObject({ ended: false });
  });

  test('ends the pause after a refusal with the grant, and with the token of another process', async () => {
    const { service } = await open();
    const { strategy, tokenStore } = strategyOf(service, machine);
    const other = strategyOf(service, machine, { tokenStore });
    const refuse = () => service.fail('token', { status: 400, body: { error: 'unauthorized_client' } });
    refuse();
    await expect(strategy.client('machine').projects()).rejects.toMatchObject({ error: 'unauthorized_client' });
    await strategy.deleteGrant('machine');
    await strategy.client('machine').projects();
    await strategy.deleteGrant('machine');
    refuse();
    await expect(strategy.client('machine').projects()).rejects.toMatchObject({ error: 'unauthorized_client' });
    await other.strategy.client('machine').projects();
    await strategy.client('machine').projects();
    expect(bodies(service)).toHaveLength(4);
  });

  test.for<[what: string, fault: object]>([
    ['invalid_client', { status: 401, body: { error: 'invalid_client' } }],
    ['a 429', { status: 429, headers: { 'retry-after': '20' } }],
    ['a 500', { status: 500 }],
    ['no answer', { hang: true }],
  ])('that strangers ask for, answered by %s, pauses nobody else', threats(103), async ([, fault]) => {
    const { service } = await open();
    const { strategy, advance } = strategyOf(service, machine, { timeout: 500 });
    await strategy.importCode('user', service.install({ authentication: 'authorization_code' }).code ?? '');
    advance(2 * HOURS);
    const times = 40;
    const stop = service.fail('token', { ...fault, times });
    const posted = Promise.allSettled(
      Array.from({ length: times / 2 }, (_, index) => [
        strategy.client(`machine ${index}`).accessToken(),
        strategy.importCode(() => undefined, 'forged'),
      ]).flat(),
    );
    await until(() => expect(bodies(service)).toHaveLength(1 + times));
    const refreshed = 'hang' in fault ? strategy.client('user').projects() : undefined;
    if (refreshed) await refreshed;
    for (const outcome of await posted) expect(outcome.status).toBe('rejected');
    stop();
    await strategy.client('user').projects();
    await strategy.client('machine').projects();
    // Its own grant has a pause.
    await expect(strategy.client('machine 1').projects()).rejects.toThrow();
    expect(bodies(service)).toHaveLength(1 + times + 2);
  });

  test('can be deleted: the next use asks for a new token', async () => {
    const { service } = await open();
    const { strategy } = strategyOf(service, machine);
    const before = await strategy.client('machine').accessToken();
    await strategy.deleteGrant('machine');
    expect(await strategy.client('machine').accessToken()).not.toBe(before);
  });

  test.for<[string, () => unknown, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('key store down, secret-of-the-application');
      },
      /the function threw/,
    ],
    ['rejects', () => Promise.reject(new Error('secret-of-the-application')), /the function threw/],
    ['hangs', () => new Promise(() => {}), /within the timeout of 300 ms/],
    ['returns a text', () => 'secret-of-the-application', /got (a )?string/],
    ['returns no grant_type', () => ({ scope: 'secret-of-the-application' }), /none with a grant_type/],
    ['returns an object as a parameter', () => ({ grant_type: 'x', a: {} }), /for a\b/],
    ['asks for client_id', () => ({ grant_type: 'x', client_id: 'a' }), /client_id, which is added/],
    ['asks for client_secret', () => ({ grant_type: 'x', client_secret: 'a' }), /client_secret, which is added/],
  ])('whose function %s is an error that names the option, and sends nothing', async ([, answer, message]) => {
    const { service } = await open();
    const { strategy } = strategyOf(service, answer as ApplicationGrant, { timeout: 300 });
    const error: unknown = await strategy
      .client('any')
      .projects()
      .catch((reason) => reason);
    expect(error).toMatchObject({ name: 'ConfigurationError', option: 'applicationGrant', strategy: 'oauth-app' });
    expect(String(error)).toMatch(message);
    expect(String(error)).not.toContain('secret-of-the-application');
    expect(bodies(service)).toEqual([]);
  });
});

describe('an application that is installed in an organization', threats(86), () => {
  test.for([
    ['crowdin_app', undefined],
    ['crowdin_app', '2'],
    ['crowdin_agent', '2'],
  ] as const)('works as the organization by %s, for user %s, until it is uninstalled', async ([grantType, userId]) => {
    const { service } = await open();
    const installed = service.install(userId === undefined ? {} : { userId });
    const { strategy } = strategyOf(service, () =>
      grantType === 'crowdin_app' ? crowdinApp(installed) : crowdinAgent({ agentId: '', ...installed }),
    );
    const client = strategy.client('organization');
    expect(JSON.stringify(await client.projects())).toContain(userId === '2' ? 'Acme' : 'Pocket Garden');
    expect([client.organizationDomain, client.baseUrl]).toEqual([installed.domain, `${installed.baseUrl}/api/v2`]);
    const [body = {}] = bodies(service);
    expect(body).toMatchObject({ grant_type: grantType, app_id: installed.appId, user_id: installed.userId });
    const { appId, appSecret, clientId, organizationId, domain, baseUrl } = installed;
    const event = {
      appId,
      appSecret,
      clientId,
      organizationId,
      ...(domain === undefined ? {} : { domain }),
      baseUrl,
    };
    expect(service.uninstall(userId === undefined ? {} : { userId })).toEqual(event);
    await expect(client.projects()).rejects.toMatchObject({ name: 'TokenError', error: 'invalid_grant' });
  });

  test('can be installed over HTTP, with the fields of the event', async () => {
    const { service } = await open();
    const control = async (method: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${service.authUrl}/_emulator/installations`, {
        method,
        headers,
        body: JSON.stringify(body),
      });
      return [answer.status, JSON.parse(await answer.text())] as const;
    };
    const [status, event] = await control('POST', { userId: '2', appId: 'app' });
    expect([status, Object.keys(event).sort()]).toEqual([
      201,
      ['agentId', 'appId', 'appSecret', 'baseUrl', 'clientId', 'code', 'domain', 'organizationId', 'userId'],
    ]);
    const { strategy } = strategyOf(service, () => crowdinApp(event));
    await strategy.client('organization').projects();
    expect((await control('DELETE', { userId: '2', appId: 'app' }))[0]).toBe(200);
    expect((await control('DELETE', { userId: '2', appId: 'app' }))[0]).toBe(400);
    await expect(strategy.client('organization').projects()).rejects.toMatchObject({ name: 'TokenError' });
  });

  test('redeems the code of its event for the grant of a user, once, with no redirect_uri', async () => {
    const { service } = await open();
    const { code = '' } = service.install({ userId: '2', authentication: 'authorization_code' });
    const { strategy, advance, tokenStore } = strategyOf(service, () => undefined);
    const log = listen('grant');
    expect(await strategy.importCode('user', code)).toEqual(await strategy.grant('user'));
    expect(log.events.map(({ event }) => event)).toMatchObject([{ grantId: 'user', action: 'imported' }]);
    const { clientID: client_id, clientSecret: client_secret } = service.options;
    expect(bodies(service)).toEqual([{ grant_type: 'authorization_code', client_id, client_secret, code }]);
    await strategy.client('user').projects();
    advance(2 * HOURS);
    await strategy.client('user').projects();
    expect(bodies(service).at(-1)).toMatchObject({ grant_type: 'refresh_token' });
    const refused = { name: 'TokenError', error: 'invalid_grant' };
    await expect(strategy.importCode('other', code)).rejects.toMatchObject(refused);
    expect(await tokenStore.get(storeId(service.options, 'other'))).toBeUndefined();
    const invalid = { name: 'ConfigurationError', option: 'code' };
    for (const wrong of ['', '\ud800abc'])
      await expect(strategy.importCode('other', wrong)).rejects.toMatchObject(invalid);
  });

  test('stores the code of a forged event under what the service says of it', threats(104), async () => {
    const { service } = await open();
    const { strategy } = strategyOf(service, () => undefined);
    const codeOf = (userId: string) => service.install({ userId, authentication: 'authorization_code' }).code ?? '';
    const organization = ({ organizationDomain, subject }: GrantSummary) =>
      `${organizationDomain ?? 'none'} ${subject}`;
    const { domain } = service.install({ userId: '2' });
    const genuine = await strategy.importCode(organization, codeOf('2'));
    expect(genuine).toMatchObject({ grantId: `${domain} 2`, organizationDomain: domain, subject: '2', ended: false });
    // The sender of this one is of no organization, whatever domain the event names.
    expect(await strategy.importCode(organization, codeOf('1'))).toMatchObject({ grantId: 'none 1' });
    expect(await strategy.importCode(organization, codeOf('2'), { replace: false })).toBeUndefined();
    expect(await strategy.grant(`${domain} 2`)).toEqual(genuine);
    expect(await strategy.importCode(() => undefined, codeOf('2'))).toBeUndefined();
    for (const id of [null, 7, '', '[object Object]', Promise.resolve('async'), {}]) {
      const idOf = (() => id) as unknown as () => string;
      await expect(strategy.importCode(idOf, codeOf('2'))).rejects.toMatchObject({
        name: 'ConfigurationError',
        option: 'grantId',
      });
    }
    const stored: string[] = [];
    for await (const { grantId } of strategy.grants()) stored.push(grantId);
    expect(stored.sort()).toEqual([`${domain} 2`, 'none 1'].sort());
  });
});
