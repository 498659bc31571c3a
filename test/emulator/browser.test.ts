import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { authorizeUrl } from './plain-client.js';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const mayBeSkipped = process.env.REQUIRE_BROWSER !== '1';

const args = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

interface Finding {
  readonly id: string;
  readonly impact: string | null;
}

describe.skipIf(executablePath === undefined && mayBeSkipped)('the consent page in Chromium', () => {
  let service: Emulator;
  let browser: Browser;
  let consentUrl: string;
  const received: (string | undefined)[] = [];
  // Answers the callback with a redirect of its own, to yet another origin, as applications do after a login.
  const application = createServer(({ url }, response) => {
    received.push(url);
    const { host } = new URL(consentUrl);
    if (url?.startsWith('/callback'))
      response.writeHead(302, { location: `http://${host.replace('127.0.0.1', 'localhost')}/end` });
    response.end();
  });

  beforeAll(async () => {
    service = await startEmulator();
    await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve));
    const address = application.address();
    const redirect_uri = `http://localhost:${typeof address === 'object' ? address?.port : 0}/callback`;
    service.register({ clientID: service.options.clientID, redirectUrls: [redirect_uri] });
    consentUrl = authorizeUrl({ redirect_uri }, service);
    browser = await chromium.launch({ args, ...(executablePath === undefined ? {} : { executablePath }) });
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    application.close();
  });

  async function open(
    colorScheme: 'light' | 'dark' = 'light',
    width = 1000,
  ): Promise<{ page: Page; complaints: string[] }> {
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(consentUrl);
    return { page, complaints };
  }

  async function arrival(page: Page, act: () => Promise<void>): Promise<URLSearchParams> {
    received.length = 0;
    await act();
    await page.waitForURL(/\/end$/);
    return new URL(received[0] ?? '', 'http://localhost').searchParams;
  }

  test('Approve leads to the application, and to the page that it redirects to', async () => {
    const { page, complaints } = await open();
    expect(complaints).toEqual([]);
    await page.getByLabel('Ben Okafor').check();
    const query = await arrival(page, () => page.getByRole('button', { name: 'Approve' }).click());
    expect([...query.keys()]).toEqual(['code', 'state']);
    expect(service.requests.findLast(({ method }) => method === 'POST')?.body).toContain('user=2');
    await page.close();
  });

  test('Decline leads to the application too', async () => {
    const { page } = await open();
    const query = await arrival(page, () => page.getByRole('button', { name: 'Decline' }).click());
    expect(Object.fromEntries(query)).toEqual({ error: 'access_denied', state: 'some-state' });
    await page.close();
  });

  test('the keyboard suffices: arrow keys choose, Tab moves on, Enter presses', async () => {
    const { page } = await open();
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    expect(await page.getByLabel('Ben Okafor').isChecked()).toBe(true);
    await page.keyboard.press('Tab');
    const query = await arrival(page, () => page.keyboard.press('Enter'));
    expect(query.get('code')).not.toBeNull();
    await page.close();
  });

  test.each([
    ['light', 1000],
    ['dark', 1000],
    ['light', 390],
    ['dark', 390],
  ] as const)('%s, %i pixels wide: no finding of axe-core, nothing cut off', async (colorScheme, width) => {
    const { page } = await open(colorScheme, width);
    const findings = await page.evaluate<Finding[]>(`${axeSource()}; axe.run().then(({ violations }) =>
      violations.map(({ id, impact }) => ({ id, impact })))`);
    expect(findings).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await keepPicture(page, `consent-${colorScheme}-${width}.png`);
    await page.close();
  });

  test('an error page has no finding of axe-core either', async () => {
    const page = await browser.newPage();
    await page.goto(`${service.authUrl}/oauth/authorize?client_id=unknown`);
    const findings = await page.evaluate<Finding[]>(`${axeSource()}; axe.run().then(({ violations }) => violations)`);
    expect(findings).toEqual([]);
    await keepPicture(page, 'refused.png');
    await page.close();
  });
});

function axeSource(): string {
  const axe: { readonly source: string } = createRequire(import.meta.url)('axe-core');
  return axe.source;
}

// For whoever wants to see them: SCREENSHOTS=folder.
async function keepPicture(page: Page, name: string): Promise<void> {
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS === undefined) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, name), fullPage: true });
}
