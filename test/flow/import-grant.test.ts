import { memoryTokenStore } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { another } from '../support/another.js';
import { withoutPauses } from '../support/fast-forward.js';
import { hold } from '../support/hold.js';
import { browser, clock, loggedIn, logIn, open, projects, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import type { World } from '../support/world.js';

const byUser = (_req: unknown, user: { id: string }) => user.id;

/** Tokens of the service for a user, as another library of the application would have obtained them. */
async function tokensFromElsewhere({ service, url }: World, user = '1') {
  const { authUrl, clientID, clientSecret } = service.options;
  const query = new URLSearchParams({ client_id: clientID, redirect_uri: `${url}/callback`, response_type: 'code' });
  const callback = new URL(
    await service.approve(`${authUrl}/oauth/authorize?${query}&scope=project&state=${'s'.repeat(43)}`, { user }),
  );
  const response = await fetch(`${authUrl}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      grant_type: 'authorization_code',
      client_id: clientID,
      client_secret: clientSecret,
      redirect_uri: `${url}/callback`,
      code: callback.searchParams.get('code'),
    }),
  });
  const { access_token: accessToken, refresh_token: refreshToken } = (await response.json()) as Record<string, string>;
  service.requests.length = 0;
  return { accessToken: String(accessToken), refreshToken: String(refreshToken) };
}

const sessionOfUser2 = {
  before: (app: { use(handler: (req: object, res: unknown, next: () => void) => void): unknown }) =>
    app.use((req, _res, next) => {
      Object.assign(req, { user: { id: '2' } });
      next();
    }),
};

describe('importGrant', () => {
  test('lets a user work without a login, in the organization that the token names', async () => {
    const tokenStore = memoryTokenStore();
    await open({ strategy: { tokenStore, grantId: byUser }, ...sessionOfUser2 });
    const { accessToken, refreshToken } = await tokensFromElsewhere(world, '2');
    await world.strategy.importGrant('2', { accessToken, refreshToken, expiresAt: new Date(Date.now() + 3_600_000) });
    const page = await browser.visit(`${world.url}/projects`);
    expect(page.json().data[0].data.name).toBe('Acme Storefront');
    const self = await browser.visit(`${world.url}/whoami`);
    expect(self.json()).toMatchObject({ authorized: true, organizationDomain: 'acme' });
    expect(world.tokenRequests()).toEqual([]);
  });

  test('refreshes at the first request where there is a refresh token alone', async () => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    const { refreshToken } = await tokensFromElsewhere(world);
    await world.strategy.importGrant('job', { refreshToken });
    const client = world.strategy.client('job');
    expect(await client.projects()).toMatchObject({ data: expect.any(Array) });
    await client.projects();
    expect(world.tokenRequests().map(({ body }) => body)).toEqual([
      expect.objectContaining({ grant_type: 'refresh_token', refresh_token: refreshToken }),
    ]);
  });

  test.for([-1, 1e308])('takes a token whose exp claim is no time (%d)', async (exp) => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    const { refreshToken } = await tokensFromElsewhere(world);
    const [header, claims] = [{ alg: 'none' }, { exp }].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    await world.strategy.importGrant('job', { accessToken: `${header}.${claims}.`, refreshToken });
    expect(await world.strategy.grant('job')).toMatchObject({ ended: false });
    expect(await world.strategy.client('job').projects()).toMatchObject({ data: expect.any(Array) });
  });

  test('refreshes at once where the access token has expired, and goes by its exp claim unless told', async () => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    const tokens = await tokensFromElsewhere(world);
    await world.strategy.importGrant('by-claim', tokens);
    await world.strategy.client('by-claim').projects();
    expect(world.tokenRequests()).toEqual([]);
    await world.strategy.importGrant('expired', { ...tokens, expiresAt: Date.now() - 1_000 });
    await world.strategy.client('expired').projects();
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('replaces the grant that the id has already', async () => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    await world.strategy.importGrant('job', await tokensFromElsewhere(world, '1'));
    const client = world.strategy.client('job');
    await client.projects();
    await world.strategy.importGrant('job', await tokensFromElsewhere(world, '2'));
    await client.projects();
    expect(client.organizationDomain).toBe('acme');
  });

  describe('with replace: false', () => {
    const withoutAdd = () => Object.assign({}, memoryTokenStore(), { add: undefined });
    const withoutLock = () => Object.assign({}, withoutAdd(), { lock: undefined, update: undefined });

    test.for([
      ['can add', memoryTokenStore],
      ['has a lock', withoutAdd],
      ['has neither', withoutLock],
    ] as const)('stores one of several imports at once, in a store that %s', async ([, createStore]) => {
      await open({ strategy: { tokenStore: createStore() } });
      const tokens = await tokensFromElsewhere(world);
      const expired = { ...tokens, expiresAt: Date.now() - 1_000 };
      const use = async () => {
        const isImported = await world.strategy.importGrant('job', expired, { replace: false });
        await world.strategy.client('job').projects();
        return isImported;
      };
      const first = await Promise.all([use(), use(), use()]);
      expect([...first, await use()].filter(Boolean)).toHaveLength(1);
      // A second one would have shown a refresh token that was used already.
      expect(world.tokenRequests()).toHaveLength(1);
    });

    test('leaves the grant of a login that another process stores at the same moment', threats(87), async () => {
      const tokenStore = new TroubledStore();
      const world = await open({ strategy: { tokenStore } });
      const older = await tokensFromElsewhere(world, '1');
      const newer = await tokensFromElsewhere(world, '2');
      const other = await another({ strategy: { tokenStore: tokenStore.inner } });
      // What the import has read before is out of date when it writes.
      tokenStore.before = async (method) => {
        if (method === 'add' || method === 'set') await other.strategy.importGrant('job', newer);
      };
      expect(await world.strategy.importGrant('job', older, { replace: false })).toBe(false);
      const client = world.strategy.client('job');
      await client.projects();
      expect(client.organizationDomain).toBe('acme');
    });

    test('does not bring back a grant that the service has ended', async () => {
      await open({ strategy: { tokenStore: memoryTokenStore() } });
      const tokens = await tokensFromElsewhere(world);
      expect(await world.strategy.importGrant('job', tokens, { replace: false })).toBe(true);
      world.service.revoke('1');
      await expect(
        withoutPauses(() => world.strategy.client('job').projects(), world.service.authUrl),
      ).rejects.toMatchObject({ status: 401 });
      world.service.requests.length = 0;
      expect(await world.strategy.importGrant('job', tokens, { replace: false })).toBe(false);
      await expect(world.strategy.client('job').projects()).rejects.toMatchObject({ status: 401 });
      expect(world.tokenRequests()).toEqual([]);
    });

    test('refuses other options', async () => {
      const { strategy } = await open({ strategy: { tokenStore: memoryTokenStore() } });
      const wrong = { replaces: false } as object;
      const error = { code: 'ERR_CONFIGURATION', option: 'replaces' };
      await expect(strategy.importGrant('job', { refreshToken: 'r' }, wrong)).rejects.toMatchObject(error);
    });
  });

  test.for<[string, unknown, string]>([
    ['neither of the tokens', { expiresAt: new Date() }, 'refreshToken'],
    ['an empty refresh token', { refreshToken: '' }, 'refreshToken'],
    ['an access token that no header can carry', { refreshToken: 'r', accessToken: 'a b' }, 'accessToken'],
    ['an access token that most servers refuse to read', { accessToken: 'a'.repeat(16_385) }, 'accessToken'],
    ['a refresh token with a line break at its end', { refreshToken: 'r\n' }, 'refreshToken'],
    ['an expiry in seconds', { refreshToken: 'r', accessToken: 'a', expiresAt: 1_900_000_000 }, 'expiresAt'],
    ['an invalid date', { refreshToken: 'r', accessToken: 'a', expiresAt: new Date('soon') }, 'expiresAt'],
    ['an expiry as text', { refreshToken: 'r', accessToken: 'a', expiresAt: '2030' }, 'expiresAt'],
    ['an unknown member', { refreshToken: 'r', refresh_token: 'r' }, 'refresh_token'],
    ['no object', 'r', 'tokens'],
  ])('refuses %s, and stores nothing', async ([, tokens, option]) => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    const error = { name: 'ConfigurationError', option };
    await expect(world.strategy.importGrant('job', tokens as never)).rejects.toMatchObject(error);
    await expect(world.strategy.client('job').projects()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
  });

  test('says which option is missing where no token store is known', async () => {
    const { strategy } = await open();
    await expect(strategy.importGrant('job', { refreshToken: 'r' })).rejects.toMatchObject({ option: 'tokenStore' });
    await expect(strategy.deleteGrant('job')).rejects.toMatchObject({ option: 'tokenStore' });
    await expect(strategy.importGrant('', { refreshToken: 'r' })).rejects.toMatchObject({ option: 'grantId' });
  });
});

describe('deleteGrant', () => {
  test('logs a user out everywhere, with one id', async () => {
    await open({ strategy: { tokenStore: memoryTokenStore(), grantId: byUser } });
    await logIn();
    expect((await projects()).status).toBe(200);
    await world.strategy.deleteGrant('1');
    expect((await whoami()).authorized).toBe(false);
    await expect(world.strategy.client('1').projects()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
  });

  test('takes a list, in which unknown ids are no error', async () => {
    await open({ strategy: { tokenStore: memoryTokenStore() } });
    const ids = Array.from({ length: 120 }, (_, index) => `user-${index}`);
    for (const id of ids) await world.strategy.importGrant(id, { refreshToken: `r-${id}` });
    await world.strategy.deleteGrant([...ids.slice(1), 'unknown']);
    world.service.fail('token', { status: 503, times: 200 });
    const codes = await Promise.all(
      ids.map((id) =>
        world.strategy
          .client(id)
          .accessToken()
          .catch((error) => error.code),
      ),
    );
    expect(new Set(codes.slice(1))).toEqual(new Set(['ERR_NOT_AUTHORIZED']));
    expect(codes[0]).toBe('ERR_SERVICE_UNAVAILABLE');
  });

  test('deletes what it can of a list, and then reports the failure', async () => {
    const inner = memoryTokenStore();
    const tokenStore = {
      ...inner,
      delete: (id: string) => (id.endsWith('+b') ? Promise.reject(new Error('down')) : inner.delete(id)),
    };
    await open({ strategy: { tokenStore } });
    for (const id of ['a', 'b', 'c']) await world.strategy.importGrant(id, { refreshToken: `r-${id}` });
    await expect(world.strategy.deleteGrant(['a', 'b', 'c'])).rejects.toMatchObject({ name: 'TokenStoreError' });
    for (const id of ['a', 'c']) {
      await expect(world.strategy.client(id).accessToken()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
    }
  });

  test('ends a grant whose refresh is running: nothing brings it back', async () => {
    await loggedIn({ strategy: { tokenStore: memoryTokenStore() } });
    const { grantId } = await whoami();
    clock.advance(7_200);
    const release = hold(world.service, 'token');
    const refreshing = world.strategy.client(grantId).accessToken();
    refreshing.catch(() => {});
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    await world.strategy.deleteGrant(grantId);
    release();
    await refreshing.catch(() => {});
    await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });
});
