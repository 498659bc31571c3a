import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Chromium, hasChromium, startChromium, type Visit } from '../support/chromium.js';
import { type Application, startApplication } from './application.js';
import { takePictures } from './screenshots.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

describe.skipIf(!hasChromium())('the example in a browser', () => {
  let chromium: Chromium;
  let application: Application;
  let visit: Visit;
  let page: Page;

  beforeAll(async () => {
    chromium = await startChromium();
  });
  afterAll(() => chromium?.close());

  beforeEach(async () => {
    application = await startApplication();
    visit = await chromium.visit();
    page = visit.page;
  });
  afterEach(async () => {
    await visit.close();
    await application.close();
    expect(visit.problems).toEqual([]);
  });

  const open = (path: string, where = page) => where.goto(`${application.url}${path}`);

  async function logIn(name: string, start = '/login', where = page): Promise<void> {
    await open(start, where);
    await where.getByText(name).check();
    await where.getByRole('button', { name: 'Approve' }).click();
    await where.waitForURL(`${application.url}/**`);
  }

  it('logs in, and back to the page that was asked for', async () => {
    await logIn('Ada Ferrant', '/projects');
    expect(page.url()).toBe(`${application.url}/projects`);
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
  });

  it('declines, and logs in all the same afterwards', async () => {
    await open('/login');
    await page.getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('heading', { name: 'You declined' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Log in' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'Hello, Ada Ferrant' }).waitFor();
  });

  it('logs in from two tabs of a fresh profile at once', async () => {
    const other = await visit.tab();
    await Promise.all([open('/login'), open('/projects', other)]);
    for (const tab of [page, other]) {
      await tab.getByRole('button', { name: 'Approve' }).click();
      await tab.waitForURL(`${application.url}/**`);
    }
    await page.getByRole('heading', { name: 'Hello' }).waitFor();
    await other.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
  });

  it('logs out', async () => {
    await logIn('Ada Ferrant');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in once' }).waitFor();
    await open('/projects');
    expect(page.url()).toContain(application.service.authUrl);
  });

  it('tells the other tabs that somebody has logged out', async () => {
    await logIn('Ada Ferrant');
    const other = await visit.tab();
    await open('/projects', other);
    await other.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await other.getByText('Logged out', { exact: true }).waitFor();
  });

  it('is used with the keyboard only', async () => {
    await open('/');
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to content');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Log in');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${application.service.authUrl}/**`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await tabTo(page, 'Approve');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Hello, Ben Okafor' }).waitFor();
    await tabTo(page, 'See my projects');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Acme Storefront' }).waitFor();
    await tabTo(page, 'Log out');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Log in once' }).waitFor();
  });

  it('switches to the organization of another account', async () => {
    await logIn('Ada Ferrant');
    await page.getByRole('link', { name: 'Log in as somebody else' }).click();
    await page.getByText('Ben Okafor').check();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'Hello, Ben Okafor' }).waitFor();
    await page.getByText(`http://acme.api.localhost`).first().waitFor();
    await page.getByRole('link', { name: 'Projects', exact: true }).click();
    await page.getByRole('heading', { name: 'Acme Storefront' }).waitFor();
  });

  it('shows the projects although the token was made to expire, and the refresh in the panel', async () => {
    await logIn('Ada Ferrant');
    await page.getByRole('button', { name: 'Expire my token now' }).click();
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
    const log = page.getByRole('log');
    await log.getByText('Token refreshed').waitFor();
    await log.getByText('grant_type=refresh_token').waitFor();
    await page.getByText('Refreshed once since').waitFor();
  });

  it('shows while one watches how many requests are served by one refresh', async () => {
    await logIn('Ada Ferrant');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Expire, then 12 at once' }).click();
    await page.getByText('12 of 12 succeeded').waitFor();
    await page.getByText('Refreshed once since').waitFor();
    expect(await page.getByRole('log').getByText('Token refreshed').count()).toBe(1);
  });

  it('explains a login that was not begun here', async () => {
    await open('/callback?code=stolen&state=forged');
    await page.getByRole('heading', { name: 'This login was not begun here' }).waitFor();
    // The browser itself notes the status of the page.
    expect(visit.problems.splice(0).join()).toContain('403');
  });

  it('fits a phone on every page', async () => {
    await visit.close();
    visit = await chromium.visit(phone);
    page = visit.page;
    for (const path of ['/', '/declined', '/login']) {
      await open(path);
      expect(await overflow(page)).toEqual([]);
    }
    await page.getByText('Ben Okafor').check();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.waitForURL(`${application.url}/**`);
    for (const path of ['/', '/projects']) {
      await open(path);
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await overflow(page)).toEqual([]);
    }
  });

  it.each(['light', 'dark'] as const)('has no serious finding of axe on any page, %s', async (colorScheme) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    for (const path of ['/', '/declined', '/nowhere', '/login']) {
      await open(path);
      expect(await seriousFindings(page)).toEqual([]);
    }
    await page.getByRole('button', { name: 'Approve' }).click();
    for (const path of ['/', '/projects', '/projects?expired']) {
      await open(path);
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await seriousFindings(page)).toEqual([]);
    }
    expect(visit.problems.splice(0).join()).toContain('404');
  });

  if (process.env.SCREENSHOTS === '1') {
    it('has its pictures taken', () => takePictures(chromium, application.url));
  }

  it('works without scripts', async () => {
    await visit.close();
    visit = await chromium.visit({ javaScriptEnabled: false });
    page = visit.page;
    await logIn('Ada Ferrant');
    await page.getByRole('button', { name: 'Expire my token now' }).click();
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
    await page.getByRole('log').getByText('Token refreshed').waitFor();
    expect(await page.getByRole('button', { name: 'at once' }).count()).toBe(0);
  });
});

function focused(page: Page): Promise<string> {
  return page.evaluate<string>('document.activeElement?.textContent?.trim() ?? ""');
}

async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press('Tab');
    if ((await focused(page)) === name) return;
  }
  throw new Error(`the keyboard does not get to ${name}`);
}

/** The elements that stick out of the window, if it can be scrolled sideways. */
function overflow(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`
    document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => one.outerHTML.slice(0, 80))`);
}

async function seriousFindings(page: Page): Promise<string[]> {
  // Not as a script element: the pages allow none but their own.
  await page.evaluate(axe);
  const results = await page.evaluate<AxeResults>('axe.run()');
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
