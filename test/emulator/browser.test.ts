import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Chromium, findings, hasChromium, keepPicture, startChromium, type Visit } from '../support/chromium.js';
import { authorizeUrl } from './plain-client.js';

describe.skipIf(!hasChromium())('the consent page in Chromium', () => {
  let service: Emulator;
  let chromium: Chromium;
  let visit: Visit;
  let page: Page;
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
    await once(application.listen(0, '127.0.0.1'), 'listening');
    const redirect_uri = `http://localhost:${(application.address() as AddressInfo).port}/callback`;
    service.register({ clientID: service.options.clientID, redirectUrls: [redirect_uri] });
    consentUrl = authorizeUrl({ redirect_uri }, service);
    chromium = await startChromium();
  });
  afterAll(async () => {
    await chromium?.close();
    await service?.close();
    application.close();
  });
  afterEach(() => visit.close());

  async function open(colorScheme: 'light' | 'dark' = 'light', width = 1000, url = consentUrl): Promise<void> {
    visit = await chromium.visit({ colorScheme, viewport: { width, height: 800 } });
    page = visit.page;
    await page.goto(url);
  }

  async function arrival(act: () => Promise<void>): Promise<URLSearchParams> {
    received.length = 0;
    await act();
    await page.waitForURL(/\/end$/);
    return new URL(received[0] ?? '', 'http://localhost').searchParams;
  }

  test('Approve leads to the application, and to the page that it redirects to', async () => {
    await open();
    expect(visit.problems).toEqual([]);
    await page.getByLabel('Ben Okafor').check();
    const query = await arrival(() => page.getByRole('button', { name: 'Approve' }).click());
    expect([...query.keys()]).toEqual(['code', 'state']);
    expect(service.requests.findLast(({ method }) => method === 'POST')?.body).toContain('user=2');
  });

  test('Decline leads to the application too', async () => {
    await open();
    const query = await arrival(() => page.getByRole('button', { name: 'Decline' }).click());
    expect(Object.fromEntries(query)).toEqual({ error: 'access_denied', state: 'some-state' });
  });

  test('the keyboard suffices: arrow keys choose, Tab moves on, Enter presses', async () => {
    await open();
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    expect(await page.getByLabel('Ben Okafor').isChecked()).toBe(true);
    await page.keyboard.press('Tab');
    const query = await arrival(() => page.keyboard.press('Enter'));
    expect(query.get('code')).not.toBeNull();
  });

  test.each([
    ['light', 1000],
    ['dark', 1000],
    ['light', 390],
    ['dark', 390],
  ] as const)('%s, %i pixels wide: no finding of axe-core, nothing cut off', async (colorScheme, width) => {
    await open(colorScheme, width);
    expect(await findings(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await keepPicture(page, `consent-${colorScheme}-${width}.png`);
  });

  test('an error page has no finding of axe-core either', async () => {
    await open('light', 1000, `${service.authUrl}/oauth/authorize?client_id=unknown`);
    expect(await findings(page)).toEqual([]);
    await keepPicture(page, 'refused.png');
  });
});
