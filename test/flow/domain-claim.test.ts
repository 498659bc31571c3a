import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { browser, logIn, open, openAtCallback, projects, visit, whoami, world } from '../support/one-world.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';

describe('a domain claim that is no DNS label ends the login before any request to the API', threats(27), () => {
  const hostile: readonly unknown[] = [
    ...['evil.example', 'evil.example/', 'evil.example#', 'evil.example?', 'a/b', 'a\\b', 'a#b', 'a?b', 'user@evil'],
    ...['evil:443', 'a.b', '.', '..', 'a.', '.a', '-a', 'a-', '-', 'a_b', 'a%2eb', '%61cme', ' acme', 'acme ', 'ac me'],
    ...['acme\t', 'acme\n', 'acme\r\nHost: evil', 'acme\0'],
    '\u0430cme', // Cyrillic a
    '\uff41cme', // full-width a
    'ac\u00adme', // soft hyphen
    'ac\u200bme', // zero-width space
    '\u212aelvin', // Kelvin sign
    'acme\u3002evil', // ideographic full stop
    'münchen',
    'a'.repeat(64),
    7,
    0,
    false,
    true,
    {},
    { toString: 'acme' },
    [],
    ['acme'],
  ];
  test.each(hostile.map((domain) => [JSON.stringify(domain), domain]))('%s', async (_shown, domain) => {
    await open({ service: { users: [{ id: 'h', name: 'Hostile', claims: { domain } }] } });
    const page = await logIn();
    expect([page.status, page.json().code]).toEqual([502, 'ERR_ORGANIZATION_DOMAIN']);
    if (typeof domain === 'string' && domain.length > 4) expect(page.text).not.toContain(domain);
    expect(world.service.requests.filter(({ path }) => path.startsWith('/api'))).toEqual([]);
    expect(stored(world)).toEqual([]);
    expect((await whoami(browser)).authorized).toBe(false);
  });
});

test.each([
  ['acme', 'acme'],
  ['ACME', 'acme'],
  ['a', 'a'],
  ['a-1', 'a-1'],
  ['1', '1'],
  ['a'.repeat(63), 'a'.repeat(63)],
  ['xn--mnchen-3ya', 'xn--mnchen-3ya'],
])('the domain claim %s leads to the enterprise host of %s', async (domain, label) => {
  await open({ service: { users: [{ id: 'm', name: 'Member', domain: label, claims: { domain } }] } });
  await logIn();
  expect((await whoami(browser)).organizationDomain).toBe(label);
  expect((await projects()).status).toBe(200);
  expect(world.service.requests.at(-1)?.headers.host).toMatch(new RegExp(`^${label}\\.api\\.localhost:\\d+$`));
});

test.each([
  ['undefined', undefined],
  ['null', null],
  ['an empty text', ''],
])('a domain claim of %s means no organization', async (_what, domain) => {
  await open({ service: { users: [{ id: 'm', name: 'Member', claims: { domain } }] } });
  await logIn();
  const me = await whoami(browser);
  expect([me.organizationDomain, me.baseUrl]).toEqual([undefined, `${world.service.baseUrl}/api/v2`]);
});

describe('the option organizationDomain', () => {
  test('reads the domain from any place in the token response', async () => {
    await open({
      service: {
        users: [{ id: 'm', name: 'Member', domain: 'acme', claims: { domain: undefined, org: { d: 'Acme' } } }],
      },
      strategy: { organizationDomain: (claims) => (claims.org as { d: string }).d },
    });
    await logIn();
    expect((await whoami(browser)).organizationDomain).toBe('acme');
  });

  test('is not believed more than the claim is', async () => {
    await open({ strategy: { organizationDomain: () => 'evil.example/' } });
    const page = await world.logIn(new Browser());
    expect(page.json().code).toBe('ERR_ORGANIZATION_DOMAIN');
  });

  test('that throws is named, and ends the login', async () => {
    await open({
      strategy: {
        organizationDomain: () => {
          throw new Error('no such claim');
        },
      },
    });
    const page = await world.logIn(new Browser());
    expect(page.json().name).toBe('ConfigurationError');
    expect(world.errors[0]).toMatchObject({ option: 'organizationDomain' });
    expect(stored(world)).toEqual([]);
  });
});

describe('claims', () => {
  test('route and name, and never authorize', threats(28), async () => {
    const claims = { admin: true, roles: ['admin'], authorized: true, grantId: 'x', baseUrl: 'https://evil.example' };
    await open({ service: { users: [{ id: 'm', name: 'Member', claims }] } });
    await logIn();
    const me = await whoami(browser);
    expect(me.user).toEqual({ id: 'm' });
    expect(me.baseUrl).toBe(`${world.service.baseUrl}/api/v2`);
  });

  test(
    'nested without end do not bring down an application that keeps its profile in the session',
    threats(28),
    async () => {
      const payload = Buffer.from(`{"sub":"1","n":${'['.repeat(5500)}${']'.repeat(5500)}}`).toString('base64url');
      const callback = await openAtCallback({ verify: undefined });
      const body = { access_token: `eyJhbGciOiJub25lIn0.${payload}.x`, token_type: 'bearer', expires_in: 60 };
      world.service.fail('token', { status: 200, body });
      expect((await visit(callback)).status).toBe(302);
      const me = await whoami(browser);
      expect([me.user.claims, me.authorized]).toEqual([{}, true]);
    },
  );
});
