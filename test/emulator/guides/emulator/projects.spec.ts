import { createServer } from 'node:http';
import { test as base, expect } from 'passport-oauth-app/emulator/playwright';
import { createApp } from '../testing/app.js';

// Starts the application once per worker, on a free port.
const test = base.extend<object, { application: { url: string } }>({
  application: [
    async ({ startedService }, use) => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = server.address();
      const url = `http://localhost:${typeof address === 'object' ? address?.port : address}`;
      const { options } = startedService;
      startedService.register({ clientID: options.clientID, redirectUrls: [`${url}/callback`] });
      server.on('request', createApp({ ...options, callbackURL: `${url}/callback`, scope: ['project'] }));
      await use({ url });
      server.close();
    },
    { scope: 'worker' },
  ],
});

test('a user sees their projects after the login', async ({ loggedInPage }) => {
  await expect(loggedInPage.locator('body')).toContainText('Pocket Garden');
});

test.describe('a member of an organization', () => {
  test.use({ loginUser: '2' });

  test('is served by the host of the organization', async ({ loggedInPage, service }) => {
    await expect(loggedInPage.locator('body')).toContainText('Acme Storefront');
    expect(service.requests.at(-1)?.headers.host).toMatch(/^acme\.api\.localhost:/);
  });
});

test('a user who declines is sent back', async ({ page, service }) => {
  await page.goto('/login');
  await page.getByRole('button', { name: 'Decline' }).click();
  await expect(page.locator('body')).toContainText('You declined.');
  expect(service.requests.filter(({ path }) => path === '/oauth/token')).toEqual([]);
});

test('a page is shown in a frame of the service', async ({ openEmbedded }) => {
  const frame = await openEmbedded('/declined', { userId: '1' });
  await expect(frame.locator('body')).toContainText('You declined.');
});
