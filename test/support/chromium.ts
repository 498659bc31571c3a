import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findExecutable, isInstalled } from './service-process.js';

/** The file of the browser, by preference of the one without windows, which takes half the CPU; `undefined` if there is none. */
export const chromiumPath: string | undefined = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
]
  .map((name) => findExecutable(name))
  .find((path) => path !== undefined);

const quiet = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP *.example.test 127.0.0.1'],
];

/** Whether there is a browser; its absence is an error where nothing may be skipped. For `describe.skipIf(!hasChromium())`. */
export function hasChromium(): boolean {
  return isInstalled('chromium', chromiumPath, 'REQUIRE_BROWSER');
}

/** A browser that runs, and fresh profiles in it. */
export interface Chromium {
  /** A page in a profile of its own. */
  visit(options?: BrowserContextOptions): Promise<Visit>;
  close(): Promise<void>;
}

/** A page, and what the browser complained of on it: errors in the console, scripts that failed, answers that should not be. */
export interface Visit {
  readonly page: Page;
  readonly problems: string[];
  /** One more page of the same profile. */
  tab(): Promise<Page>;
  close(): Promise<void>;
}

/** Starts the browser. Hosts below example.test are this machine. */
export async function startChromium(args: readonly string[] = []): Promise<Chromium> {
  if (chromiumPath === undefined) throw new Error('chromium is not installed');
  const browser = await chromium.launch({ executablePath: chromiumPath, args: [...quiet, ...args], timeout: 0 });
  return { visit: async (options = {}) => visit(await browser.newContext(options)), close: () => browser.close() };
}

/** Blocks third-party cookies. The last list of features that are off counts: Playwright's own would keep this one off. */
const blocking = ['--disable-features=HttpsUpgrades', '--enable-features=ForceThirdPartyCookieBlockingEnabled'];

/** Starts a browser of its own, with third-party cookies allowed, as they are unless its user chooses, or blocked. */
export async function startProfile(thirdPartyCookies: 'allowed' | 'blocked'): Promise<Visit> {
  const browser = await startChromium(thirdPartyCookies === 'blocked' ? blocking : []);
  return { ...(await browser.visit()), close: () => browser.close() };
}

async function visit(context: BrowserContext): Promise<Visit> {
  const problems: string[] = [];
  const tab = async () => {
    const page = await context.newPage();
    // What never comes is for the limit of the test.
    page.setDefaultTimeout(0);
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(String(error)));
    return page;
  };
  return { page: await tab(), problems, tab, close: () => context.close() };
}

/** Everything that axe finds on a page, of whatever impact. */
export async function findings(page: Page): Promise<string[]> {
  // Not as a script element: the pages allow none but their own.
  await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** Keeps a picture for whoever wants to see it: SCREENSHOTS=folder. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS !== undefined) await page.screenshot({ path: join(SCREENSHOTS, name), fullPage: true });
}
