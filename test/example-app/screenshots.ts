import { mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions, Page } from 'playwright-core';
import type { Chromium } from '../support/chromium.js';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const window = { viewport: { width: 1120, height: 660 }, reducedMotion: 'reduce' } as const;
const largestBytes = 120_000;

/** Takes the pictures of the README, of a running application, into docs/images. */
export async function takePictures(chromium: Chromium, url: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await take(chromium, 'consent', window, async (page) => {
    await page.goto(`${url}/login`);
  });
  await take(chromium, 'home-light', window, async (page) => {
    await logIn(page, url, 'Ada Ferrant');
    await burst(page);
  });
  await take(chromium, 'panel-dark', { ...window, colorScheme: 'dark' }, async (page) => {
    await logIn(page, url, 'Ben Okafor');
    await page.getByRole('button', { name: 'Expire my token now' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
  });
  const phone = { ...window, viewport: { width: 390, height: 780 }, isMobile: true };
  await take(chromium, 'phone', phone, async (page) => {
    await logIn(page, url, 'Ada Ferrant');
    await page.getByRole('link', { name: 'Projects', exact: true }).click();
    await page.getByRole('heading', { name: 'Pocket Garden' }).waitFor();
  });
}

async function take(
  chromium: Chromium,
  name: string,
  options: BrowserContextOptions,
  pose: (page: Page) => Promise<void>,
): Promise<void> {
  const { page, close } = await chromium.visit(options);
  await pose(page);
  const path = `${folder}${name}.png`;
  await page.screenshot({ path });
  await close();
  const { size } = await stat(path);
  if (size > largestBytes) throw new Error(`${name}.png has ${size} bytes`);
}

async function logIn(page: Page, url: string, name: string): Promise<void> {
  await page.goto(`${url}/login`);
  await page.getByText(name).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
}

async function burst(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Expire, then 12 at once' }).click();
  await page.getByText('12 of 12 succeeded').waitFor();
  await page.getByText('11 × GET /projects').waitFor();
  await page.mouse.move(0, 0);
}
