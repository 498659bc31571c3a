import {
  test as base,
  type FrameLocator,
  type Page,
  type PlaywrightTestArgs,
  type PlaywrightTestOptions,
  type PlaywrightWorkerArgs,
  type PlaywrightWorkerOptions,
  type TestType,
} from '@playwright/test';
import type { EmbedOptions } from './embedding.js';
import { type Emulator, startEmulator } from './emulator.js';
import type { EmulatorOptions } from './options.js';

/** The application under test. */
export interface TestedApplication {
  /** Its address, which becomes `baseURL`. */
  readonly url: string;
}

/** Fixtures and options of a worker. */
export interface EmulatorWorkerFixtures {
  /** Options of the emulator, as for `startEmulator`. */
  readonly serviceOptions: EmulatorOptions;
  /** The emulator of this worker, for the fixture `application`. It is not reset. */
  readonly startedService: Emulator;
  /** Override it to start your application with `startedService.options`. Default: `undefined`, so `baseURL` is that of the config. */
  readonly application: TestedApplication | undefined;
}

/** Fixtures and options of a test. */
export interface EmulatorTestFixtures {
  /** Start of the login in the application. Default `/login`. */
  readonly loginPath: string;
  /** Id of the user who logs in. Default: the first one. */
  readonly loginUser: string | undefined;
  /** The emulator of this worker, as after its start: `reset()` is called before each test. */
  readonly service: Emulator;
  /** A page that has logged in through the application and the consent page. */
  readonly loggedInPage: Page;
  /**
   * Opens a page of the application in a frame of the service, on another site, and returns what is in the frame. Applications at
   * `localhost` and `*.localhost` keep `Secure` cookies there without TLS.
   *
   * @param path - Of the application.
   */
  readonly openEmbedded: (path?: string, options?: EmbedOptions) => Promise<FrameLocator>;
}

/** Playwright's `test` with the fixtures of the emulator. */
export type EmulatorTest = TestType<
  PlaywrightTestArgs & PlaywrightTestOptions & EmulatorTestFixtures,
  PlaywrightWorkerArgs & PlaywrightWorkerOptions & EmulatorWorkerFixtures
>;

/**
 * Playwright's `test` with one emulator for each worker, reset before each test, and a page that is logged in.
 *
 * @example
 * import { test as base } from 'passport-oauth-app/emulator/playwright';
 * const test = base.extend<object, { application: { url: string } }>({
 *   application: [
 *     async ({ startedService }, use) => {
 *       const server = createApp(startedService.options).listen(3000);
 *       await use({ url: 'http://localhost:3000' });
 *       server.close();
 *     },
 *     { scope: 'worker' },
 *   ],
 * });
 * test('shows the projects', async ({ loggedInPage }) => {
 *   await expect(loggedInPage.getByText('Pocket Garden')).toBeVisible();
 * });
 */
export const test: EmulatorTest = base.extend<EmulatorTestFixtures, EmulatorWorkerFixtures>({
  serviceOptions: [{}, { option: true, scope: 'worker' }],
  startedService: [
    async ({ serviceOptions }, use) => {
      const service = await startEmulator(serviceOptions);
      await use(service);
      await service.close();
    },
    { scope: 'worker' },
  ],
  application: [undefined, { option: true, scope: 'worker' }],
  service: [
    async ({ startedService }, use) => {
      startedService.reset();
      await use(startedService);
    },
    { auto: true },
  ],
  baseURL: async ({ baseURL, application }, use) => {
    await use(application?.url ?? baseURL);
  },
  loginPath: ['/login', { option: true }],
  loginUser: [undefined, { option: true }],
  loggedInPage: async ({ page, service, loginPath, loginUser }, use) => {
    await page.goto(loginPath);
    if (loginUser !== undefined) await page.locator(`input[name="user"][value=${JSON.stringify(loginUser)}]`).check();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.waitForURL((url) => url.origin !== service.authUrl);
    await use(page);
  },
  openEmbedded: async ({ page, baseURL, service }, use) => {
    await use(async (path = '/', options = {}) => {
      await page.goto(service.embed(new URL(path, baseURL), options));
      return page.frameLocator('iframe');
    });
  },
});

export { expect } from '@playwright/test';
