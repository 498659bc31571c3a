import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { answering, COOKIES, inFrame, sessionWith } from '../support/framed.js';
import {
  approve,
  bodyOf,
  button,
  identified,
  inChromium,
  inFrameOf,
  logInByPopup,
  openPopup,
  openSite,
  origin,
  page,
  profile,
  show,
} from '../support/framed-page.js';
import { world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { sendJson } from '../support/world.js';

inChromium('in a frame of the service, in Chromium with third-party cookies %s', {}, (mode) => {
  test('another user in the popup is told so there, and nothing is stored', threats(96), async () => {
    await openSite(identified());
    await show('/board', { userId: '1' });
    const popup = await openPopup();
    await popup.getByText('Ben').click();
    await approve(popup);
    await popup.getByText('another account').waitFor();
    await popup.getByText('ERR_OTHER_ACCOUNT').waitFor();
    expect(popup.isClosed()).toBe(false);
    await popup.close();
    await page.reload();
    await button().waitFor();
  });

  test('a user whom the callback route refuses stays logged out, and is shown its answer', threats(99), async () => {
    const callback = answering(({ session }, res) => session.destroy(() => sendJson(res, { text: 'not for you' })));
    for (const options of [inFrame({ callback }), identified({ callback })]) {
      await openSite(options);
      await show('/board', { userId: '1' });
      const popup = await openPopup();
      await approve(popup);
      await popup.getByText('not for you').waitFor();
      await page.reload();
      await button().waitFor();
      await popup.close();
    }
  });

  test(
    'Cross-Origin-Opener-Policy of the service is told in the popup, and identify does without the link',
    threats(94),
    async () => {
      const service = { crossOriginOpenerPolicy: 'same-origin' } as const;
      await openSite(inFrame({ service }));
      await show();
      const popup = await openPopup();
      await approve(popup);
      await popup.getByText('open the application in a tab').waitFor();
      await popup.getByText('identify').waitFor();
      await popup.close();
      await button().waitFor();
      await openSite(identified({ service }));
      const address = await show();
      const second = await openPopup();
      await approve(second);
      await second.getByText('load the page that you came from again').waitFor();
      await page.goto(address);
      await bodyOf().getByText('"user":{"id":"1"}').waitFor();
    },
  );

  test('a login and a logout in a tab leave the frame as it was, and the other way round', threats(93), async () => {
    await openSite(inFrame());
    const tab = await profile.tab();
    const inTab = async () => (await (await tab.goto(`${origin()}/whoami`))?.json())?.user?.id;
    const logOut = (where: Pick<Page, 'evaluate'>) =>
      where.evaluate(() => fetch('/logout', { method: 'POST' }).then(({ status }) => status));
    const logInTab = async () => {
      await tab.goto(`${origin()}/login`);
      await tab.getByText('Ben').click();
      await approve(tab);
      await tab.waitForURL(`${origin()}/`);
    };
    const callsApi = () => page.frames()[1]?.evaluate(() => fetch('/projects').then(({ status }) => status));
    await logInTab();
    await show();
    await logInByPopup('1');
    expect(await inTab()).toBe('2');
    expect(await logOut(tab)).toBe(200);
    await show();
    await bodyOf().getByText('"user":{"id":"1"}').waitFor();
    expect(await inTab()).toBeUndefined();
    expect(await callsApi()).toBe(200);
    await logInTab();
    await show();
    await bodyOf().getByText('"user":{"id":"1"}').waitFor();
    expect(await callsApi()).toBe(200);
    expect(await logOut(page.frames()[1] ?? tab)).toBe(200);
    await show();
    await button().waitFor();
    expect(await inTab()).toBe('2');
    await tab.close();
  });

  test('a foreign page that frames the login route logs no tab in', threats(93), async () => {
    for (const kind of ['lax', 'none', 'partitioned'] as const) {
      await page.context().clearCookies();
      await openSite({
        ...inFrame(sessionWith(COOKIES[kind])),
        service: { consent: 'remember' },
      });
      await world.service.approve(
        `${world.service.authUrl}/oauth/authorize?client_id=${world.service.options.clientID}&response_type=code&scope=project+tm&redirect_uri=${encodeURIComponent(`${origin()}/callback`)}`,
      );
      await page.goto(`${origin().replace('app.localhost', 'evil.localhost')}/whoami`);
      await page.setContent(`<iframe src="${origin()}/login"></iframe>`);
      await bodyOf()
        .getByText(kind === 'partitioned' ? '"home":true' : 'ERR_SESSION_COOKIE')
        .waitFor();
      expect((await (await page.goto(`${origin()}/whoami`))?.json())?.user).toBeUndefined();
    }
  });

  test('a foreign page can neither frame the button nor open the popup, and gets no message', threats(93), async () => {
    await openSite(inFrame());
    const evil = `${origin().replace('app.localhost', 'evil.localhost')}/whoami`;
    await page.goto(evil);
    await page.setContent(`<iframe src="${origin()}/board"></iframe>`);
    await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/);
    await show();
    const script = await inFrameOf().locator('script').textContent();
    const url = /"url":"([^"]+)"/.exec(script ?? '')?.[1] ?? '';
    for (const opener of [evil, evil.replace('evil.localhost', 'sibling.app.localhost')]) {
      const foreign = await profile.tab();
      await foreign.goto(opener);
      const [popup] = await Promise.all([
        foreign.waitForEvent('popup'),
        foreign.evaluate(`void window.open(${JSON.stringify(origin() + url)}, '_blank', 'popup')`),
      ]);
      await popup.getByText('has not opened this window').waitFor();
      await foreign.close();
    }
    expect(world.service.requests).toEqual([]);
  });

  test('a session cookie under a former name is an error that names it', threats(94), async () => {
    await openSite(
      inFrame({
        ...sessionWith(COOKIES.partitioned),
        before: (app) => {
          app.use('/former', (_req, res) => {
            res.setHeader('Set-Cookie', 'connect.sid=former; Path=/; SameSite=None; Secure');
            res.end('former');
          });
          sessionWith(COOKIES.partitioned).before?.(app);
        },
      }),
    );
    await page.goto(`${origin()}/former`);
    await show();
    const popup = await openPopup();
    await approve(popup);
    if (mode === 'blocked') {
      await bodyOf().getByText('"user"').waitFor();
    } else {
      await bodyOf().getByText('did not get through').waitFor();
      expect(world.errors.map(({ code, message }) => [code, message])).toEqual([
        ['ERR_SESSION_COOKIE', expect.stringContaining('two cookies named connect.sid')],
      ]);
    }
  });

  test('the page of the button tells of a popup that the browser blocks', async () => {
    await openSite(inFrame());
    await show();
    await page.frames()[1]?.evaluate('window.open = () => null');
    await button().focus();
    await page.keyboard.press('Enter');
    await inFrameOf().getByRole('status').getByText('has blocked the window').waitFor();
  });
});
