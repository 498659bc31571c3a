import { type Browser, type BrowserContext, launch, type Page } from 'puppeteer-core';
import { expect } from 'vitest';
import { findExecutable, isInstalled } from '../support/service-process.js';
import { until } from '../support/until.js';

const executablePath = findExecutable('firefox-esr') ?? findExecutable('firefox');

/** Whether there is Firefox; its absence is an error where nothing may be skipped. For `describe.skipIf(!hasFirefox())`. */
export function hasFirefox(): boolean {
  return isInstalled('firefox-esr', executablePath, 'REQUIRE_BROWSER');
}

/** Starts Firefox, which is driven over WebDriver BiDi. Hosts below example.test that are named here are this machine. */
export function startFirefox(preferences: Readonly<Record<string, unknown>> = {}): Promise<Browser> {
  return launch({
    browser: 'firefox',
    executablePath: executablePath ?? '',
    headless: true,
    // What never comes is for the limit of the test.
    timeout: 0,
    protocolTimeout: 0,
    extraPrefsFirefox: { 'network.dns.localDomains': 'app.example.test,evil.example.test', ...preferences },
  });
}

/** Opens a page. */
export async function openPage(profile: BrowserContext): Promise<Page> {
  const page = await profile.newPage();
  page.setDefaultTimeout(0);
  return page;
}

/** Presses Approve on the consent page. @param user Id of the user who does. */
export async function approve(page: Page, user?: string): Promise<void> {
  if (user !== undefined) await page.locator(`input[name="user"][value="${user}"]`).click();
  await page.locator('button.approve').click();
}

/** Waits until the page has an address. The driver's own record of it is behind after redirects. */
export async function isAt(page: Page, url: string): Promise<void> {
  await until(async () => expect(await page.evaluate('location.href').catch(() => '')).toBe(url));
}

/** Returns the text of a page, as soon as it holds a part. */
export async function textWith(page: Page, part: string): Promise<string> {
  let text = '';
  const read = async () => {
    // A page that is being left has no body.
    text = String(await page.evaluate('document.body.innerText').catch(() => ''));
    return text;
  };
  await until(async () => expect(await read()).toContain(part));
  return text;
}
