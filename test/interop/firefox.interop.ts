import { memoryTokenStore } from 'passport-oauth-app';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inFrame } from '../support/framed.js';
import { open } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import type { World } from '../support/world.js';
import { approve, hasFirefox, openPage, startFirefox } from './firefox.js';

/** The application as another site than the service. */
function originOf({ url, service }: World): string {
  const origin = url.replace('127.0.0.1', 'app.localhost');
  service.register({ clientID: service.options.clientID, redirectUrls: [`${origin}/callback`] });
  return origin;
}

const userOf = ({ url = '' }): { id: string } | undefined => {
  const token = new URL(url, 'http://a').searchParams.get('jwtToken');
  return token ? { id: JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub } : undefined;
};

const settings = [
  ['as it comes, which partitions third-party cookies', 5],
  ['with third-party cookies blocked', 1],
] as const;

// Not `for` of Vitest: it forgets that the group is skipped, and starts the browser.
for (const [title, cookieBehavior] of settings) {
  describe.skipIf(!hasFirefox())(`in Firefox ${title}`, () => {
    const isBlocked = cookieBehavior === 1;
    let browser: Browser;
    let page: Page;
    beforeAll(async () => {
      browser = await startFirefox({ 'network.cookie.cookieBehavior': cookieBehavior });
    });
    afterAll(() => browser?.close());

    async function show(address: string): Promise<void> {
      const context = await browser.createBrowserContext();
      page = await openPage(context);
      await page.goto(address);
    }

    /** The text of the frame, as soon as it holds a part. */
    async function frameWith(part: string): Promise<string> {
      let text = '';
      await expect
        .poll(async () => {
          const frame = page.frames()[1];
          text = (await frame?.evaluate('document.body.innerText').catch(() => '')) as string;
          return text;
        })
        .toContain(part);
      return text;
    }

    async function logInByPopup(): Promise<void> {
      await frameWith('Log in');
      await page.frames()[1]?.locator('button').click();
      const opened = async () => (await page.browserContext().pages()).filter((each) => each !== page);
      await expect.poll(opened).toHaveLength(1);
      const [popup] = await opened();
      await popup?.locator('button.approve').click();
    }

    test(
      isBlocked ? 'the button ends in an error that names the cause' : 'the button logs the frame in',
      threats(94),
      async () => {
        const world = await open(inFrame());
        await show(world.service.embed(`${originOf(world)}/board?x=1`));
        await logInByPopup();
        if (!isBlocked) return expect(await frameWith('"user"')).toContain('"url":"/board?x=1');
        await frameWith('did not get through');
        expect(world.errors.map(({ code, message }) => [code, message])).toEqual([
          ['ERR_SESSION_COOKIE', expect.stringContaining('whose cookies the browser blocks')],
        ]);
      },
    );

    test('a signed token logs in without any cookie', async () => {
      const strategy = { grantId: (_req: unknown, user: { id: string }) => user.id, tokenStore: memoryTokenStore() };
      const world = await open(
        inFrame(
          { session: false, strategy: strategy as object, authenticate: { session: false } },
          { identify: userOf },
        ),
      );
      await show(world.service.embed(`${originOf(world)}/board`));
      await logInByPopup();
      await frameWith('"user":{"id":"1"}');
      expect(await page.browserContext().cookies()).toEqual([]);
    });

    if (isBlocked) return;

    test('a redirect logs in where the service remembers its consent', async () => {
      const world = await open({ ...inFrame({}, {}, { frame: undefined }), service: { consent: 'remember' } });
      const origin = originOf(world);
      await show(`${origin}/login`);
      await approve(page);
      await expect.poll(() => page.url()).toBe(`${origin}/`);
      await page.goto(world.service.embed(`${origin}/board`));
      await frameWith('"user"');
    });
  });
}
