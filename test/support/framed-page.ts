import { jwtVerify } from 'jose';
import { memoryTokenStore } from 'passport-oauth-app';
import type { FrameLocator, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { hasChromium, startProfile, type Visit } from './chromium.js';
import { inFrame } from './framed.js';
import { open, world } from './one-world.js';
import { standIn } from './stand-in.js';
import type { World, WorldOptions } from './world.js';

const [currentProfile, setProfile] = standIn<Visit>('browser');
const [currentPage, setPage] = standIn<Page>('tab');

/** The browser's profile, in tests of {@link inChromium}. */
export const profile: Visit = currentProfile;
/** A tab of it, a new one for each test. */
export const page: Page = currentPage;
/** Of the application, after {@link openSite}. */
export const origin = (): string => siteOf(world.url);

/** Groups tests in Chromium, with third-party cookies allowed and with them blocked. */
export function inChromium(
  title: string,
  options: { readonly meta?: object },
  tests: (mode: 'allowed' | 'blocked') => void,
): void {
  // Not `for`: it forgets that the group is skipped, and starts the browser.
  for (const mode of ['allowed', 'blocked'] as const) {
    describe.skipIf(!hasChromium())(title.replace('%s', mode), options, () => {
      beforeAll(async () => {
        setProfile(await startProfile(mode));
      });
      beforeEach(async () => {
        await profile.page.context().clearCookies();
        const tab = await profile.tab();
        setPage(tab);
        return () => tab.close();
      });
      afterAll(() => profile.close());
      tests(mode);
    });
  }
}

/** Starts a service, and an application as another site. */
export async function openSite(options: WorldOptions): Promise<void> {
  originOf(await open(options));
}

/** Shows a page of the application in a frame of the service, and returns the address of the page around. */
export async function show(path = '/board', user?: { readonly userId: string }): Promise<string> {
  const address = world.service.embed(origin() + path, user);
  await page.goto(address);
  return address;
}

const siteOf = (url: string) => url.replace('127.0.0.1', 'app.localhost');

/** The application as another site than the service; its siblings are below it. */
export function originOf({ url, service }: World): string {
  service.register({ clientID: service.options.clientID, redirectUrls: [`${siteOf(url)}/callback`] });
  return siteOf(url);
}

/** An application whose frame names its user by the service's signed token. */
export function identified(options: WorldOptions = {}): WorldOptions {
  const byUser = { grantId: (_req: unknown, user: { id: string }) => user.id, tokenStore: memoryTokenStore() };
  const strategy = { ...byUser, ...options.strategy } as NonNullable<WorldOptions['strategy']>;
  return inFrame({ ...options, strategy }, ({ service }) => ({
    identify: async ({ url = '' }) => {
      const token = new URL(url, 'http://a').searchParams.get('jwtToken');
      if (!token) return undefined;
      const secret = new TextEncoder().encode(service.options.clientSecret);
      const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'] });
      return { id: String(payload.sub) };
    },
  }));
}

export const inFrameOf = (tab = page): FrameLocator => tab.frameLocator('iframe');
export const bodyOf = (tab = page): Locator => inFrameOf(tab).locator('body');
export const button = (tab = page): Locator => inFrameOf(tab).getByRole('button', { name: 'Log in' });

/** Presses the button, and returns the popup. */
export async function openPopup(tab = page): Promise<Page> {
  const [popup] = await Promise.all([tab.waitForEvent('popup'), button(tab).click()]);
  return popup;
}

export const approve = (popup: Page): Promise<void> => popup.getByRole('button', { name: 'Approve' }).click();

/** Logs in by the popup, which closes. */
export async function logInByPopup(user?: string): Promise<void> {
  const popup = await openPopup();
  if (user !== undefined) await popup.locator(`input[name="user"][value="${user}"]`).check();
  await Promise.all([popup.waitForEvent('close'), approve(popup)]);
  await bodyOf().getByText('"user"').waitFor();
}
