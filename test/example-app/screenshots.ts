import { mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Chromium } from '../support/chromium.js';
import { startApplication } from './application.js';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const largestBytes = 200_000;
const wide: BrowserContextOptions = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' };
const phone: BrowserContextOptions = { ...wide, viewport: { width: 390, height: 1000 }, isMobile: true };

/** Takes the pictures of the documents into docs/images, each of an application of its own. */
export async function takePictures(chromium: Chromium): Promise<void> {
  await mkdir(folder, { recursive: true });
  await take(chromium, 'consent', wide, async ({ page, url }) => {
    await page.goto(`${url}/login`);
    return undefined;
  });
  await take(chromium, 'burst', { ...wide, deviceScaleFactor: 2 }, burst);
  await take(chromium, 'home-light', wide, recover);
  await take(chromium, 'panel-dark', { ...wide, colorScheme: 'dark' }, recover);
  await take(chromium, 'outage-light', wide, breakService);
  await take(chromium, 'outage-dark', { ...wide, colorScheme: 'dark' }, breakService);
  await take(chromium, 'phone', phone, recover);
  await take(chromium, 'phone-dark', { ...phone, colorScheme: 'dark' }, breakService);
}

interface Stage {
  readonly page: Page;
  readonly url: string;
  /** Lets time pass by moving the clock, with an API call every four seconds. */
  pass(seconds: number): Promise<void>;
  press(name: string): Promise<void>;
}

async function logIn(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/login`);
  await page.getByText('Ada Ferrant').check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL(`${url}/**`);
}

/** The drawing of twelve calls at once, and its verdict. */
async function burst({ page, url, pass, press }: Stage): Promise<Locator> {
  await logIn(page, url);
  await pass(4);
  await press('12 calls at once');
  return page.locator('[data-part="burst"]');
}

async function breakService({ page, url, pass, press }: Stage): Promise<undefined> {
  await logIn(page, url);
  await pass(60);
  await press('Service down for 30 s');
  await pass(20);
}

async function recover(stage: Stage): Promise<undefined> {
  await breakService(stage);
  await stage.press('Fix everything');
  await stage.pass(12);
  await stage.press('12 calls at once');
}

async function take(
  chromium: Chromium,
  name: string,
  options: BrowserContextOptions,
  pose: (stage: Stage) => Promise<Locator | undefined>,
): Promise<void> {
  let movedMs = 0;
  const { url, close } = await startApplication({ clock: () => Date.now() + movedMs });
  const visit = await chromium.visit(options);
  const { page } = visit;
  const live = () => page.getByText('Live', { exact: true }).waitFor();
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 4) {
      movedMs += 4000;
      await page.goto(`${url}/projects`);
    }
    await page.goto(url);
    await live();
  };
  const press = async (button: string) => {
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.locator('.notice').waitFor();
    await live();
  };
  const part = (await pose({ page, url, pass, press })) ?? page;
  await page.mouse.move(0, 0);
  const path = `${folder}${name}.png`;
  await part.screenshot({ path });
  await visit.close();
  await close();
  const { size } = await stat(path);
  if (size > largestBytes) throw new Error(`${name}.png has ${size} bytes`);
}
