import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Chromium, findings, hasChromium, keepPicture, startChromium, type Visit } from '../support/chromium.js';
import { exchange, projects, service, startService, startServiceForEachTest, tokensFor } from './plain-client.js';

startServiceForEachTest();

async function html(): Promise<string> {
  return (await fetch(service.authUrl)).text();
}

describe('the status page over HTTP', () => {
  test('shows applications, users, live grants and requests', async () => {
    await tokensFor('2');
    const page = await html();
    for (const text of ['Sample application', 'sample-client-id', 'Ada Ferrant', 'Organization acme']) {
      expect(page).toContain(text);
    }
    expect(page).toMatch(/>(2 h 0 min|1 h 59 min)</);
    expect(page).toMatch(/\/oauth\/token<\/span>[\s\S]*?>200</);
  });

  test('shows the client secret once, and no token, code or secret of a request', async () => {
    const { access_token, refresh_token } = await tokensFor();
    await projects(access_token, `?access_token=${access_token}`);
    await exchange('a-code-that-is-long-enough-0123456789', { refresh_token, custom: access_token });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const form = new URLSearchParams({ client_secret: service.options.clientSecret, refresh_token });
    await fetch(`${service.authUrl}/oauth/token`, { method: 'POST', headers, body: form });
    await fetch(`${service.authUrl}/oauth/token`, { method: 'POST', body: `see ${refresh_token} there` });
    const page = await html();
    expect(page.split(service.options.clientSecret)).toHaveLength(2);
    for (const secret of [access_token, refresh_token, refresh_token.split('.')[2] ?? '', 'a-code-that-is-long']) {
      expect(page).not.toContain(secret);
    }
    expect(page).toContain('samp…');
  });

  test('escapes names and paths', async () => {
    service.addUser({ id: '"><img src=x>', name: '<img src=x onerror=alert(1)>' });
    await fetch(`${service.authUrl}/<img>?a=<img>`);
    expect(await html()).not.toContain('<img');
  });

  test('its forms work without script, and lead back to the page', async () => {
    const post = (path: string, fields: Record<string, string>) =>
      fetch(`${service.authUrl}/_emulator/${path}`, {
        method: 'POST',
        headers: { accept: 'text/html' },
        body: new URLSearchParams(fields),
        redirect: 'manual',
      });
    const page = await html();
    const [, value = ''] = /name="fault" value="([^"]*)">503/.exec(page) ?? [];
    const added = await post('faults', { endpoint: 'token', fault: value.replaceAll('&quot;', '"') });
    expect([added.status, added.headers.get('location')]).toEqual([303, '/']);
    expect((await exchange('any')).headers.get('retry-after')).toBe('2');
    await post('faults', { endpoint: 'api', times: 'Infinity', fault: '{"status":418}' });
    expect(await html()).toContain('status: 418, every request');
    for (let n = 0; n < 3; n += 1) expect((await projects('x')).status).toBe(418);
    await post('faults/2?_method=DELETE', {});
    expect((await projects('x')).status).toBe(401);
    await tokensFor('1');
    await post('revoke', { userId: '1' });
    expect(await html()).toContain('No grants yet');
    await post('advance', { seconds: '3600' });
    expect(await html()).toContain('time moved by 1 h 0 min');
  });

  test('allows its own script and style only', async () => {
    const { headers } = await fetch(service.authUrl);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(
      /default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'/,
    );
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
  });

  test('keepRequests: 0 is said in place of the requests', async () => {
    await startService({ keepRequests: 0 });
    expect(await html()).toContain('no requests are recorded');
  });
});

describe.skipIf(!hasChromium())('the status page in Chromium', () => {
  let chromium: Chromium;
  let visit: Visit;
  let page: Page;
  beforeAll(async () => {
    chromium = await startChromium();
  });
  afterAll(() => chromium?.close());
  afterEach(async () => {
    await visit.close();
    expect(visit.problems).toEqual([]);
  });

  async function open(options: BrowserContextOptions = {}): Promise<void> {
    visit = await chromium.visit({ viewport: { width: 1280, height: 900 }, ...options });
    page = visit.page;
    await page.goto(service.authUrl);
  }

  const button = (name: string) => page.getByRole('button', { name });
  const faults = () => page.getByRole('list', { name: 'Queued faults' });

  test('shows requests and grants as they come', async () => {
    await open();
    await page.getByText('No requests yet').waitFor();
    await tokensFor('2');
    await page.locator('summary', { hasText: '/oauth/token' }).waitFor();
    await page.locator('#grant-list').getByText('Ben Okafor').waitFor();
  });

  test('keeps a request open while others arrive', async () => {
    await exchange('any');
    await open();
    await page.locator('summary').click();
    await page.getByText('"grant_type": "authorization_code"').waitFor();
    await projects('x');
    await page.locator('summary', { hasText: '/api/v2/projects' }).waitFor();
    expect(await page.getByText('"grant_type": "authorization_code"').isVisible()).toBe(true);
  });

  test('a button queues a fault, and another removes it, without leaving the page', async () => {
    await open();
    await page.getByLabel('API', { exact: true }).check();
    await button('503, retry in 2 s').click();
    await faults().getByText('503').waitFor();
    expect((await projects('x')).status).toBe(503);
    await faults().waitFor({ state: 'detached' });
    expect(await page.getByLabel('API', { exact: true }).isChecked()).toBe(true);
    await page.getByLabel('Every request until removed').check();
    await button('Never respond').click();
    await button('Remove all faults').click();
    await faults().waitFor({ state: 'detached' });
    expect((await projects('x')).status).toBe(401);
  });

  test('time, expiry and revocation have buttons', async () => {
    const { access_token } = await tokensFor('1');
    await open();
    await button('+ 1 hour').click();
    await page.getByText('time moved by 1 h').waitFor();
    expect((await projects(access_token)).status).toBe(200);
    await button('Expire all access tokens').click();
    await page.locator('#grant-list').getByText('expired').waitFor();
    expect((await projects(access_token)).status).toBe(401);
    await button('Revoke the grants of Ada Ferrant').click();
    await page.getByText('No grants yet').waitFor();
  });

  test('the keyboard alone queues a fault', async () => {
    await open();
    await page.getByLabel('Token', { exact: true }).focus();
    await page.keyboard.press('ArrowRight');
    for (let n = 0; n < 2; n += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await faults().getByText('api').waitFor();
  });

  test('works without script', async () => {
    await open({ javaScriptEnabled: false });
    await button('500 error').click();
    await faults().getByText('500 error').waitFor();
  });

  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
    ['light', 320],
  ] as const)('%s, %i pixels wide: no finding of axe-core, nothing cut off', async (colorScheme, width) => {
    const { access_token } = await tokensFor('1');
    await tokensFor('2');
    await projects(access_token);
    await projects('x');
    service.fail('token', { status: 503, headers: { 'retry-after': '2' } });
    await exchange('any');
    service.fail('api', { hang: true, times: Number.POSITIVE_INFINITY });
    service.fail('token', { delay: [100, 3000] });
    await open({ colorScheme, viewport: { width, height: 900 } });
    expect(await findings(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await keepPicture(page, `emulator-${colorScheme}-${width}.png`);
  });
});
