import { jwtVerify } from 'jose';
import { memoryTokenStore } from 'passport-oauth-app';
import type { FrameLocator, Locator, Page } from 'playwright-core';
import { inFrame } from './framed.js';
import type { World, WorldOptions } from './world.js';

/** The application as another site than the service; its siblings are below it. */
export function originOf({ url, service }: World): string {
  const origin = url.replace('127.0.0.1', 'app.localhost');
  service.register({ clientID: service.options.clientID, redirectUrls: [`${origin}/callback`] });
  return origin;
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

export const inFrameOf = (page: Page): FrameLocator => page.frameLocator('iframe');
export const bodyOf = (page: Page): Locator => inFrameOf(page).locator('body');
export const button = (page: Page): Locator => inFrameOf(page).getByRole('button', { name: 'Log in' });

/** Presses the button, and returns the popup. */
export async function openPopup(page: Page): Promise<Page> {
  const [popup] = await Promise.all([page.waitForEvent('popup'), button(page).click()]);
  return popup;
}

export const approve = (popup: Page): Promise<void> => popup.getByRole('button', { name: 'Approve' }).click();

/** Logs in by the popup, which closes. */
export async function logInByPopup(page: Page, user?: string): Promise<void> {
  const popup = await openPopup(page);
  if (user !== undefined) await popup.locator(`input[name="user"][value="${user}"]`).check();
  await Promise.all([popup.waitForEvent('close'), approve(popup)]);
  await bodyOf(page).getByText('"user"').waitFor();
}
