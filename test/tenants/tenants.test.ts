import { describe, expect, test } from 'vitest';
import { openShops } from './shops.js';

describe('a login', () => {
  test('belongs to one tenant, and a session may have several', async () => {
    const { browser, logIn, me, url, requestsTo } = await openShops();
    expect(await (await logIn(browser, 'acme')).text).toBe('Logged in.');
    expect(await me(browser, 'ACME')).toMatchObject({
      authorized: true,
      tenant: 'acme',
      user: { id: '1', tenant: 'acme' },
    });
    expect(await me(browser, 'globex')).toMatchObject({ authorized: false, tenant: 'globex' });
    await logIn(browser, 'globex', '2');
    expect(await me(browser, 'acme')).toMatchObject({ authorized: true });
    expect(await me(browser, 'globex')).toMatchObject({ authorized: true, user: { id: '2', tenant: 'globex' } });
    // Without a tenant in the request, the latest login counts.
    expect((await browser.visit(`${url}/latest/me`)).json()).toMatchObject({ authorized: true, tenant: 'globex' });
    await browser.visit(`${url}/shops/acme/projects`);
    expect(requestsTo('acme', '/api/v2/projects')).toHaveLength(1);
    expect(requestsTo('globex', '/api/v2/projects')).toHaveLength(0);
  });
});
