import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Chromium, findings, hasChromium, startChromium, type Visit } from '../support/chromium.js';
import { type Application, startApplication } from './application.js';
import { takePictures } from './screenshots.js';

const live = (page: Page) => page.getByText('Live', { exact: true }).waitFor();
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

  it('declines, and logs in all the same afterwards', async () => {
    await open('/login');
    await page.getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('heading', { name: 'You declined' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Log in' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'Hello, Ada Ferrant' }).waitFor();
  });

  it('asks for one permission more by a button, again after a refusal, and keeps the login when it is declined', async () => {
    await logIn('Ada Ferrant');
    await page.getByRole('link', { name: 'Use my glossary' }).click();
    await page.getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('heading', { name: 'You declined, and nothing changed' }).waitFor();
    await open('/');
    await page.getByRole('link', { name: 'Use my glossary' }).click();
    await page.getByRole('checkbox', { name: 'glossary' }).uncheck();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'This page needs one more permission' }).waitFor();
    await page.getByRole('link', { name: 'Ask me again' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'Glossary' }).waitFor();
    expect(page.url()).toBe(`${application.url}/glossary`);
    expect(visit.problems.splice(0).filter((problem) => !problem.includes('403'))).toEqual([]);
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

  it('logs in inside a frame of the service, and stays as it was outside of it', async () => {
    await open('/');
    await page.getByRole('link', { name: 'See it inside the service' }).click();
    const frame = page.frameLocator('iframe');
    const button = frame.getByRole('button', { name: 'Log in' });
    const [popup] = await Promise.all([page.waitForEvent('popup'), button.click()]);
    await popup.getByRole('button', { name: 'Approve' }).click();
    await frame.getByText('Pocket Garden').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await open('/');
    await page.getByRole('heading', { name: 'Log in once' }).waitFor();
    // The answer with the button is a 401, which the console reports.
    expect(visit.problems.splice(0).filter((problem) => !problem.includes('status of 401'))).toEqual([]);
  });

  it('runs a job as the organization that has installed it, with nobody logged in', async () => {
    await open('/grants');
    await page.getByRole('button', { name: 'Run a job as the organization' }).click();
    await page.getByText('Its job found 3 projects').waitFor();
    expect(await findings(page)).toEqual([]);
    // It is no login of a user.
    await page.getByRole('link', { name: 'Back to the grants' }).click();
    await page.getByText('No user is logged in').waitFor();
  });

  it('shows the operator all grants, and logs an account out everywhere', async () => {
    await open('/grants');
    await page.getByText('No user is logged in').waitFor();
    const phones = await Promise.all([chromium.visit(), chromium.visit()]);
    await logIn('Ben Okafor');
    for (const each of phones) await logIn('Ada Ferrant', '/projects', each.page);
    await page.getByRole('link', { name: 'Grants' }).click();
    await page.getByText('acme · 1 login').waitFor();
    await page.getByText('Personal account · 2 logins').waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Log out everywhere: Ada Ferrant' }).click();
    await page.getByText('Personal account').waitFor({ state: 'detached' });
    await page.getByText('acme · 1 login').waitFor();
    for (const each of phones) {
      await open('/', each.page);
      await each.page.getByText('Your access has expired').waitFor();
      await each.close();
    }
  });

  it('tells the other tabs that somebody has logged out, where nothing can be pressed any more', async () => {
    await logIn('Ada Ferrant');
    const other = await visit.tab();
    await open('/', other);
    await live(other);
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await other.getByText('You logged out').waitFor();
    expect(await other.locator('button:enabled').count()).toBe(0);
    expect(await other.locator('.who:visible').count()).toBe(0);
    expect(await other.locator('progress').count()).toBe(0);
    expect(await findings(other)).toEqual([]);
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

  it('shows a refused token and its refresh in the log, which stays open while the page goes on', async () => {
    await logIn('Ada Ferrant');
    await page.getByRole('button', { name: 'Reject my token' }).click();
    await page.getByText('The service rejected the token: 1 refresh').waitFor();
    const log = page.getByRole('region', { name: 'Log, newest first' });
    expect(await log.isVisible()).toBe(false);
    await page.getByText('Log: every event').click();
    await log.getByText('Token refreshed').waitFor();
    await log.getByText('grant_type=refresh_token').waitFor();
    await log.getByText('2 × GET /projects').waitFor();
    expect(await log.isVisible()).toBe(true);
    await page.getByText('Refreshed once since').waitFor();
  });

  it('lets the button that tries again wait for as long as the service asks for', async () => {
    await logIn('Ada Ferrant');
    await live(page);
    application.service.fail('api', { status: 503, headers: { 'retry-after': '3600' } });
    await open('/projects');
    const waiting = page.getByText(/Try again in \d+ s/);
    await waiting.waitFor();
    expect(await waiting.getAttribute('aria-disabled')).toBe('true');
    expect(await waiting.getAttribute('href')).toBeNull();
    await page.evaluate('performance.now = () => 4_000_000');
    await page.getByRole('link', { name: 'Try again', exact: true }).click();
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
    expect(visit.problems.splice(0).join()).toContain('503');
  });

  it('shows the time of the server, whatever the clock of the browser says', async () => {
    await page.addInitScript('Date.now = () => 0');
    await logIn('Ada Ferrant');
    await live(page);
    expect(await page.locator('[data-part="token"] .row b').textContent()).toMatch(/^4[0-5] s left of 45 s$/);
  });

  it('says that it is offline, and goes on when it is online again', async () => {
    await logIn('Ada Ferrant');
    await live(page);
    await page.context().setOffline(true);
    await page.getByText('Offline', { exact: true }).waitFor();
    await page.context().setOffline(false);
    await live(page);
    visit.problems.length = 0;
  });

  it.each([320, 390])('fits a screen of %i pixels on every page', async (width) => {
    await visit.close();
    visit = await chromium.visit({ ...phone, viewport: { width, height: 700 } });
    page = visit.page;
    for (const path of ['/', '/declined', '/login']) {
      await open(path);
      expect(await overflow(page)).toEqual([]);
    }
    await page.getByText('Ben Okafor').check();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.waitForURL(`${application.url}/**`);
    await open('/grants');
    expect(await overflow(page)).toEqual([]);
    await open('/');
    await page.getByRole('button', { name: '12 calls at once' }).click();
    await page.getByText('12 waited').waitFor();
    await page.getByText('Log: every event').click();
    expect(await overflow(page)).toEqual([]);
    await open('/projects');
    await live(page);
    expect(await overflow(page)).toEqual([]);
    const [panel, projects] = await Promise.all(['.panel', '.projects'].map((one) => page.locator(one).boundingBox()));
    expect(panel?.y).toBeLessThan(projects?.y ?? 0);
  });

  describe('has no finding of axe', () => {
    const schemes = ['light', 'dark'] as const;
    beforeEach(() => page.emulateMedia({ reducedMotion: 'reduce' }));
    const press = (name: string) => page.getByRole('button', { name }).click();
    const expectNone = async () => {
      for (const colorScheme of schemes) {
        await page.emulateMedia({ colorScheme });
        expect(await findings(page)).toEqual([]);
      }
    };

    it('on the pages of visitors who are not logged in', async () => {
      for (const path of ['/', '/declined', '/nowhere', '/callback?code=stolen&state=forged']) {
        await open(path);
        await expectNone();
      }
      visit.problems.length = 0;
    });

    it('on the pages of those who are', async () => {
      await logIn('Ada Ferrant');
      for (const path of ['/', '/projects', '/grants', '/declined']) {
        await open(path);
        await live(page);
        await expectNone();
      }
    });

    it('after a burst, with the log open', async () => {
      await logIn('Ada Ferrant');
      await press('12 calls at once');
      await page.getByText('12 waited').waitFor();
      await page.getByText('Log: every event').click();
      await expectNone();
    });

    it('after the permission has ended', async () => {
      await logIn('Ada Ferrant');
      await press('Revoke at the service');
      await page.getByText('Your access has expired').waitFor();
      await expectNone();
    });

    // In one scheme each: an outage ends by itself.
    it.each(schemes)('in an outage, %s', async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      await logIn('Ada Ferrant');
      await press('Service down for 30 s');
      await page.getByText('No usable token').waitFor();
      expect(await findings(page)).toEqual([]);
      await open('/projects');
      await page.getByRole('heading', { name: 'The service is not responding' }).waitFor();
      expect(await findings(page)).toEqual([]);
      visit.problems.length = 0;
    });
  });

  it('prints dark on white, without buttons, although the screen is dark', async () => {
    await logIn('Ada Ferrant');
    await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
    const paper = await page.evaluate('getComputedStyle(document.querySelector(".panel")).backgroundColor');
    expect(paper).toBe('rgb(255, 255, 255)');
    expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(23, 33, 31)');
    expect(await page.locator('button:visible').count()).toBe(0);
    await page.getByRole('img', { name: 'The last 100 seconds' }).waitFor();
  });

  it('shows a whole focus ring around everything that the keyboard gets to', async () => {
    await logIn('Ada Ferrant');
    await live(page);
    await page.getByText('Log: every event').click();
    for (let presses = 0; presses < 24; presses += 1) {
      await page.keyboard.press('Tab');
      expect(await cutFocusRing(page)).toBe('');
    }
  });

  it('keeps the text of a project at the top of its card and the progress at the bottom', async () => {
    await logIn('Ada Ferrant', '/projects');
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
    const differences = await page.evaluate<number[]>(`(() => {
      const cards = [...document.querySelectorAll('.projects .card')].map((card) => {
        const box = (part) => (part ? card.querySelector(part) : card).getBoundingClientRect();
        return [box('h2').top - box().top, box('h2 + p').top - box('h2').bottom, box().bottom - box('progress').bottom];
      });
      const distances = [0, 1, 2].map((index) => cards.map((card) => card[index]));
      return distances.map((each) => Math.max(...each) - Math.min(...each));
    })()`);
    for (const difference of differences) expect(difference).toBeLessThan(1);
  });

  if (process.env.SCREENSHOTS === '1') {
    it('has its pictures taken', () => takePictures(chromium), 120_000);
  }

  it('works without scripts', async () => {
    await visit.close();
    visit = await chromium.visit({ javaScriptEnabled: false });
    page = visit.page;
    await logIn('Ada Ferrant');
    await page.getByText(/^As of \d\d:\d\d:\d\d$/).waitFor();
    await page.getByRole('button', { name: '12 calls at once' }).click();
    await page.getByText('12 waited, 1 refresh, 12 × 200, 0 lost logins').waitFor();
    await page.getByRole('img', { name: '12 waited' }).waitFor();
    await page.getByRole('img', { name: 'The last 20 seconds: 2 tokens' }).waitFor();
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await page.getByRole('heading', { name: 'Log in once' }).waitFor();
  });
});

function focused(page: Page): Promise<string> {
  return page.evaluate<string>('document.activeElement?.textContent?.trim() ?? ""');
}

async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
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

/** The element with the focus, if a part around it cuts its ring. */
function cutFocusRing(page: Page): Promise<string> {
  return page.evaluate<string>(`(() => {
    const one = document.activeElement;
    const { outlineWidth, outlineOffset } = getComputedStyle(one);
    const room = parseFloat(outlineWidth) + parseFloat(outlineOffset);
    const ring = one.getBoundingClientRect();
    for (let around = one.parentElement; around && around !== document.body; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === 'visible') continue;
      const box = around.getBoundingClientRect();
      if (ring.left - room < box.left || ring.right + room > box.right) return one.outerHTML.slice(0, 80);
    }
    return '';
  })()`);
}
