import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { startEmulator } from 'passport-oauth-app/emulator';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { createApp } from './app.js';

const executablePath = '/usr/bin/chromium';

test.skipIf(!existsSync(executablePath))('a person logs in with a browser', async () => {
  const service = await startEmulator();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const origin = `http://localhost:${typeof address === 'object' ? address?.port : address}`;
  const callbackURL = `${origin}/callback`;
  service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
  server.on('request', createApp({ ...service.options, callbackURL, scope: ['project'] }));

  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const page = await browser.newPage();
  await page.goto(`${origin}/projects`);
  await page.getByLabel('Ben Okafor').check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL(`${origin}/projects`);
  expect(await page.textContent('body')).toContain('Acme Storefront');

  await browser.close();
  server.close();
  await service.close();
});
