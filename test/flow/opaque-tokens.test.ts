import { memoryTokenStore, type Profile, type StrategyOptions } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { clock, loggedIn, logIn, open, projects, whoami, world } from '../support/one-world.js';
import { references, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { warnings } from '../support/warnings.js';
import { byUser, type WorldOptions } from '../support/world.js';

/** The option `userProfile` for a service with opaque tokens. */
const idFromApi: StrategyOptions['userProfile'] = async (client) =>
  (await client.get<{ data: { id: string } }>('/user')).data;

type Done = (error: unknown, user?: unknown) => void;

const service = { profile: { accessToken: 'opaque' } } as const;

/** An application that keeps its users in a table, by the id of their profile. */
function withTable(): { readonly rows: Map<unknown, number>; readonly verify: WorldOptions['verify'] } {
  const rows = new Map<unknown, number>();
  const verify = (_accessToken: string, _refreshToken: string, profile: Profile, done: Done) => {
    const row = rows.get(profile.id) ?? rows.size + 100;
    rows.set(profile.id, row);
    done(null, { id: row });
  };
  return { rows, verify };
}

describe('access tokens that do not say whose they are', threats(89), () => {
  test('userProfile gives the id: two users have two identities, and each its own grant', async () => {
    const { rows, verify } = withTable();
    await open({ service, strategy: { userProfile: idFromApi }, verify });
    for (const user of ['1', '2']) {
      const browser = new Browser();
      expect((await world.logIn(browser, user)).status).toBe(302);
      expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    }
    expect([...rows]).toEqual([
      ['1', 100],
      ['2', 101],
    ]);
    const grants = new Set(references(world));
    expect(grants.size).toBe(2);
  });

  test(
    'become JWTs later, whose sub is another id: nobody is logged out, and another sub ends the grant',
    threats(114),
    async () => {
      const jwt = (sub: string) => `e30.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.x`;
      await loggedIn({ service, strategy: { userProfile: idFromApi } });
      const { grantId } = await whoami();
      const refreshed = async (sub: string) => {
        clock.advance(7_200);
        const body = { access_token: jwt(sub), token_type: 'bearer', expires_in: 7_200, refresh_token: sub };
        world.service.fail('token', { status: 200, body });
        return await world.strategy.client(grantId).accessToken();
      };
      for (const sub of ['uuid-of-1', 'uuid-of-1']) {
        expect(await refreshed(sub)).toBe(jwt(sub));
        expect(await world.strategy.grant(grantId)).toMatchObject({ subject: '1' });
      }
      await expect(refreshed('uuid-of-2')).rejects.toMatchObject({ name: 'NotAuthorizedError' });
    },
  );

  test('without an id from anywhere, profile has no such property, and a warning says so once', async () => {
    const seen: Profile[] = [];
    const verify = (_accessToken: string, _refreshToken: string, profile: Profile, done: Done) => {
      seen.push(profile);
      done(null, { name: 'somebody' });
    };
    const told = warnings('ERR_NO_PROFILE_ID');
    await open({ service, verify });
    for (let time = 0; time < 2; time++) expect((await logIn()).status).toBe(302);
    expect(told).toMatchObject([{ message: expect.stringContaining('Set the option userProfile') }]);
    expect(seen.splice(1)).toHaveLength(1);
    expect(seen).toEqual([{ provider: 'oauth-app', claims: {} }]);
    expect(Object.keys(seen[0] ?? {})).toEqual(['provider', 'claims']);
  });

  test.for([null, '', {}])('the id %j of userProfile names nobody: no two users share it', async (id) => {
    await open({
      service,
      strategy: { userProfile: async () => ({ id }) },
      verify: (_accessToken: string, _refreshToken: string, _profile: Profile, done: Done) =>
        done(null, { username: 'ada' }),
    });
    await logIn();
    const grant = await world.strategy.grant((await whoami()).grantId);
    expect(grant).toMatchObject({ subject: undefined, ended: false });
  });

  test.for<[string, Partial<StrategyOptions>, unknown, string]>([
    ['id: undefined', {}, { id: undefined }, 'verify'],
    ['id: null', {}, { id: null, name: 'Ada' }, 'verify'],
    ['an undefined id for grantId', { grantId: byUser }, { name: 'Ada' }, 'grantId'],
    ['its text', { grantId: (_req, user) => String(Reflect.get(user, 'id')) }, { name: 'Ada' }, 'grantId'],
    ['it as a part', { grantId: (_req, user) => `user_${Reflect.get(user, 'id')}` }, { name: 'Ada' }, 'grantId'],
    ['the text of an id', { grantId: byUser }, { id: 'undefined' }, 'grantId'],
  ])(
    'a user with %s ends the login with an error that says where an id comes from',
    async ([, strategy, user, option]) => {
      await open({
        service,
        strategy: { tokenStore: memoryTokenStore(), ...strategy },
        verify: (_accessToken: string, _refreshToken: string, _profile: Profile, done: Done) => done(null, user),
      });
      expect((await logIn()).status).toBe(500);
      expect(world.errors).toMatchObject([{ name: 'ConfigurationError', option }]);
      expect((await await whoami()).authorized).toBe(false);
      expect(stored(world).filter(([, entry]) => 'passport' in entry)).toEqual([]);
    },
  );

  test.for<[string, object | string]>([
    ['_id', { id: undefined, _id: 7 }],
    ['username', { id: undefined, username: 'ada' }],
    ['no id at all', { email: 'ada@example.com' }],
    ['the user as a text', 'ada'],
  ])('users with %s are fine', async ([, user]) => {
    await open({
      service,
      verify: (_accessToken: string, _refreshToken: string, _profile: Profile, done: Done) => done(null, user),
    });
    expect((await logIn()).status).toBe(302);
    expect((await projects()).status).toBe(200);
  });

  test('without verify the profile is the user, with an id or without', async () => {
    await open({ service, verify: undefined });
    expect((await logIn()).status).toBe(302);
    expect((await projects()).status).toBe(200);
  });
});
