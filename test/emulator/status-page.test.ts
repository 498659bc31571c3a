import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { startEmulator } from 'passport-oauth-app/emulator';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchange, projects, service, startServiceForEachTest, tokensFor } from './plain-client.js';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const mayBeSkipped = process.env.REQUIRE_BROWSER !== '1';
const args = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];

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
    expect(await html()).toContain('No application has a grant yet');
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
    const silent = await startEmulator({ keepRequests: 0 });
    expect(await (await fetch(silent.authUrl)).text()).toContain('no request is recorded');
    await silent.close();
  });
});

describe.skipIf(executablePath === undefined && mayBeSkipped)('the status page in Chromium', () => {
  let browser: Browser;
  const complaints: string[] = [];
  beforeAll(async () => {
    browser = await chromium.launch({ args, ...(executablePath === undefined ? {} : { executablePath }) });
  });
  afterAll(() => browser?.close());

  async function open(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    complaints.length = 0;
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(service.authUrl);
    return page;
  }

  test('shows requests and grants as they come', async () => {
    const page = await open();
    await page.getByText('No request yet').waitFor();
    await tokensFor('2');
    await page.locator('summary', { hasText: '/oauth/token' }).waitFor();
    await page.locator('#grant-list').getByText('Ben Okafor').waitFor();
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('keeps a request open while others arrive', async () => {
    await exchange('any');
    const page = await open();
    await page.locator('summary').click();
    await page.getByText('"grant_type": "authorization_code"').waitFor();
    await projects('x');
    await page.locator('summary', { hasText: '/api/v2/projects' }).waitFor();
    expect(await page.getByText('"grant_type": "authorization_code"').isVisible()).toBe(true);
    await page.close();
  });

  test('a button queues a fault, and another removes it, without leaving the page', async () => {
    const page = await open();
    await page.getByLabel('API', { exact: true }).check();
    await page.getByRole('button', { name: '503, retry in 2 s' }).click();
    await page.getByRole('list', { name: 'Queued faults' }).getByText('503').waitFor();
    expect((await projects('x')).status).toBe(503);
    await page.getByRole('list', { name: 'Queued faults' }).waitFor({ state: 'detached' });
    expect(await page.getByLabel('API', { exact: true }).isChecked()).toBe(true);
    await page.getByLabel('Every request until removed').check();
    await page.getByRole('button', { name: 'Never respond' }).click();
    await page.getByRole('button', { name: 'Remove all faults' }).click();
    await page.getByRole('list', { name: 'Queued faults' }).waitFor({ state: 'detached' });
    expect((await projects('x')).status).toBe(401);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('time, expiry and revocation have buttons', async () => {
    const { access_token } = await tokensFor('1');
    const page = await open();
    await page.getByRole('button', { name: '+ 1 hour' }).click();
    await page.getByText('time moved by 1 h').waitFor();
    expect((await projects(access_token)).status).toBe(200);
    await page.getByRole('button', { name: 'Expire all access tokens' }).click();
    await page.locator('#grant-list').getByText('expired').waitFor();
    expect((await projects(access_token)).status).toBe(401);
    await page.getByRole('button', { name: 'Revoke the grants of Ada Ferrant' }).click();
    await page.getByText('No application has a grant yet').waitFor();
    await page.close();
  });

  test('the keyboard alone queues a fault', async () => {
    const page = await open();
    await page.getByLabel('Token', { exact: true }).focus();
    await page.keyboard.press('ArrowRight');
    for (let n = 0; n < 2; n += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('list', { name: 'Queued faults' }).getByText('api').waitFor();
    await page.close();
  });

  test('works without script', async () => {
    const page = await open({ javaScriptEnabled: false });
    await page.getByRole('button', { name: '500 error' }).click();
    await page.getByRole('list', { name: 'Queued faults' }).getByText('500 error').waitFor();
    await page.close();
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
    const page = await open({ colorScheme, viewport: { width, height: 900 } });
    const { source }: { readonly source: string } = createRequire(import.meta.url)('axe-core');
    const findings = await page.evaluate<unknown>(
      `${source}; axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))`,
    );
    expect(findings).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await keepPicture(page, `emulator-${colorScheme}-${width}.png`);
    await page.close();
  });
});

// To see them: SCREENSHOTS=folder.
async function keepPicture(page: Page, name: string): Promise<void> {
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS === undefined) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, name), fullPage: true });
}
