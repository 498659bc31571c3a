import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Application, startApplication } from '../example-app/application.js';
import { approve, hasFirefox, isAt, openPage, startFirefox, textWith } from './firefox.js';

// Each page of the example once: test/example-app/browser.test.ts has the rest, in Chromium.
describe.skipIf(!hasFirefox())('the example in Firefox', () => {
  let firefox: Browser;
  let application: Application;
  let profile: BrowserContext;
  let page: Page;
  let problems: string[];
  beforeAll(async () => {
    firefox = await startFirefox();
  });
  afterAll(() => firefox?.close());
  beforeEach(async () => {
    application = await startApplication();
    profile = await firefox.createBrowserContext();
    problems = [];
    page = await tab();
  });
  afterEach(async () => {
    await profile.close();
    await application.close();
    expect(problems).toEqual([]);
  });

  async function tab(): Promise<Page> {
    const opened = await openPage(profile);
    opened.on('pageerror', (error) => problems.push(String(error)));
    opened.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    return opened;
  }
  const open = (path: string, where = page) => where.goto(`${application.url}${path}`);
  const press = (name: string, where = page) => where.locator(`::-p-aria(${name})`).click();

  async function logIn(user: string, start = '/login'): Promise<void> {
    await open(start);
    await approve(page, user);
  }

  test('shows each page to visitors who are not logged in', async () => {
    for (const [path, text] of [
      ['/', 'Log in once'],
      ['/grants', 'No user is logged in'],
      ['/declined', 'You declined'],
      ['/nowhere', 'Page not found'],
      ['/callback?code=stolen&state=forged', 'This login did not start here'],
    ] as const) {
      await open(path);
      await textWith(page, text);
    }
  });

  test('logs in, back to the page that was asked for, and shows each page; logs out, which the other tab is told', async () => {
    await logIn('1', '/projects');
    await isAt(page, `${application.url}/projects`);
    await textWith(page, 'Pocket Garden');
    await open('/grants');
    await textWith(page, '1 login');
    const other = await tab();
    await open('/', other);
    await textWith(other, 'Hello, Ada Ferrant');
    await textWith(other, 'Live');
    await open('/');
    await press('Log out');
    await textWith(page, 'Log in once');
    await textWith(other, 'You logged out');
  });

  test('declines, and logs in all the same afterwards, as a member of an organization', async () => {
    await open('/login');
    await page.locator('button[value="decline"]').click();
    await textWith(page, 'You declined');
    await logIn('2');
    await textWith(page, 'Hello, Ben Okafor');
    await textWith(page, 'http://acme.api.localhost');
  });

  test('asks for one permission more, again after a refusal', async () => {
    await logIn('1');
    await textWith(page, 'Hello, Ada Ferrant');
    await press('Use my glossary');
    await page.locator('input[value="glossary"]').click();
    await approve(page);
    await textWith(page, 'This page needs one more permission');
    await press('Ask me again');
    await approve(page);
    await isAt(page, `${application.url}/glossary`);
    await textWith(page, 'Glossary');
  });

  test('draws twelve calls that one refresh serves, and shows them in the log', async () => {
    await logIn('1');
    await textWith(page, 'Live');
    await press('12 calls at once');
    await textWith(page, '12 waited, 1 refresh, 12 × 200, 0 lost logins');
    await page.locator('::-p-text(Log: every event)').click();
    await textWith(page, 'grant_type=refresh_token');
  });

  test('logs in inside a frame of the service', async () => {
    await open('/embedded');
    const frame = await page.waitForFrame((each) => each.url().includes('/embedded/projects'));
    await frame.locator('button').click();
    const popups = async () => (await profile.pages()).filter((each) => each !== page && each.url() !== 'about:blank');
    await expect.poll(popups).toHaveLength(1);
    const [popup] = await popups();
    await approve(popup as Page);
    await expect
      .poll(() =>
        page
          .frames()[1]
          ?.evaluate('document.body.innerText')
          .catch(() => ''),
      )
      .toContain('Pocket Garden');
    expect(await profile.cookies()).toEqual([]);
  });
});
