import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { forgedCode, inFrame, sessionWith } from '../support/framed.js';
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
  originOf,
  page,
  profile,
  show,
} from '../support/framed-page.js';
import { world } from '../support/one-world.js';
import { threats } from '../support/threats.js';

/** What the frame sends: a code, and the verifier that belongs to it. */
interface Sent {
  readonly code: string;
  readonly verifier: string;
}

const evilOf = (origin: string) => origin.replace('app.localhost', 'evil.localhost');
const siblingOf = (origin: string) => origin.replace('app.localhost', 'sibling.app.localhost');

/** Posts to the application what was stolen, from a page of its origin; the status of the answer. */
const send = (page: Page, sent: Sent): Promise<number> =>
  page.evaluate(
    (body) =>
      fetch('/login/frame', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }).then(({ status }) => status),
    sent,
  );

inChromium('attacks on a frame of the service, in Chromium with third-party cookies %s', threats(93), () => {
  const userIn = async (tab: Page) =>
    (await (await tab.goto(`${origin()}/whoami`))?.json())?.user?.id as string | undefined;

  /** Opens the frame, presses the button and approves, and keeps the frame from sending what the popup brings. */
  async function steal(): Promise<Sent> {
    await page.route('**/login/frame', (route) => route.abort());
    await show();
    const popup = await openPopup();
    const [request] = await Promise.all([page.waitForRequest('**/login/frame'), approve(popup)]);
    await bodyOf().getByText('did not get through').waitFor();
    await page.unroute('**/login/frame');
    return request.postDataJSON();
  }

  test(
    'a code is of no use without its verifier, nor twice, nor forged with the client secret',
    threats(100),
    async () => {
      await openSite(inFrame());
      const sent = await steal();
      const thief = await profile.tab();
      await thief.goto(`${origin()}/whoami`);
      const frame = page.frames()[1] as unknown as Page;
      expect(await send(frame, { ...sent, code: forgedCode(world, sent.verifier, Date.now()) })).toBe(403);
      expect(await send(thief, { ...sent, verifier: 'x'.repeat(43) })).toBe(403);
      expect(await send(frame, sent)).toBe(204);
      for (const where of [frame, thief]) expect(await send(where, sent)).toBe(403);
      expect(await userIn(thief)).toBeUndefined();
      await thief.close();
    },
  );

  test("an attacker's own code is not taken from a message, of the page around, a sibling, or the popup elsewhere", async () => {
    await openSite(inFrame());
    const own = await profile.tab();
    let code = '';
    await own.route('**/login/frame', (route) => {
      ({ code } = route.request().postDataJSON());
      return route.abort();
    });
    await own.goto(world.service.embed(`${origin()}/board`));
    const ended = await openPopup(own);
    await ended.locator('input[name="user"][value="2"]').check();
    await approve(ended);
    await bodyOf(own).getByText('did not get through').waitFor();
    await own.close();

    const posts: string[] = [];
    page.on('request', (request) => request.method() === 'POST' && posts.push(request.url()));
    await show();
    const popup = await openPopup();
    const message = JSON.stringify({ type: 'passport-oauth-app', code });
    const frame = page.frames()[1];
    await frame?.evaluate(`globalThis.heard = 0; addEventListener('message', () => { heard += 1; })`);
    await page.evaluate(`window.frames[0].postMessage(${message}, '*')`);
    for (const elsewhere of [evilOf(origin()), siblingOf(origin())]) {
      // A navigation from outside would cut the link to the opener.
      await Promise.all([
        popup.waitForURL(`${elsewhere}/whoami`),
        popup.evaluate(`location.href = '${elsewhere}/whoami'`),
      ]);
      await popup.evaluate(`opener.postMessage(${message}, '*')`);
    }
    // Of the right origin, but not of the popup.
    await frame?.evaluate(`postMessage(${message}, '*')`);
    await expect.poll(() => frame?.evaluate('heard')).toBe(4);
    expect(posts).toEqual([]);
    expect(await button().isVisible()).toBe(true);
    await popup.close();
  });

  test('a sibling origin that is in the place of the frame hears nothing of the popup', async () => {
    await openSite(inFrame());
    await show();
    const popup = await openPopup();
    const frame = page.frames()[1];
    await frame?.goto(`${siblingOf(origin())}/whoami`);
    await frame?.evaluate(`globalThis.heard = []; addEventListener('message', ({ data }) => heard.push(data))`);
    await Promise.all([popup.waitForEvent('close'), approve(popup)]);
    // A message of its own comes after those of the popup.
    await frame?.evaluate(`new Promise((done) => { addEventListener('message', done); postMessage('own', '*') })`);
    expect(await frame?.evaluate('heard')).toEqual(['own']);
  });

  test('a handle that is sent to a victim logs nobody in, by a mail, a foreign page or a page of the application', async () => {
    for (const [options, told] of [
      [inFrame(), 'open the application in a tab'],
      [identified(), 'another account'],
    ] as const) {
      await openSite(options);
      await show('/board', { userId: '2' });
      const script = await inFrameOf().locator('script').textContent();
      const handle = origin() + (/"url":"([^"]+)"/.exec(script ?? '')?.[1] ?? '');
      const victim = await profile.tab();
      await victim.goto(handle);
      await victim.getByText('has not opened this window').waitFor();
      await victim.goto(`${evilOf(origin())}/whoami`);
      await victim.setContent(`<a href="${handle}">Look</a>`);
      await victim.getByRole('link').click();
      await victim.getByText('has not opened this window').waitFor();
      expect(world.service.requests).toEqual([]);
      await victim.goto(`${origin()}/whoami`);
      await victim.setContent(`<a href="${handle}" target="_blank">Look</a>`);
      const [opened] = await Promise.all([victim.waitForEvent('popup'), victim.getByRole('link').click()]);
      await opened.locator('input[name="user"][value="1"]').check();
      await approve(opened);
      await opened.getByText(told).waitFor();
      expect(await userIn(victim)).toBeUndefined();
      await show('/board', { userId: '2' });
      await button().waitFor();
      for (const tab of [opened, victim]) await tab.close();
    }
  });

  test("the popup leaves the tabs' return cookie alone", async () => {
    await openSite(inFrame({}, {}, { login: '/sign-in' }));
    const tab = await profile.tab();
    await tab.goto(`${origin()}/board?of=tab`);
    expect(tab.url()).toContain('/sign-in');
    const kept = async () => (await tab.context().cookies(origin())).filter(({ name }) => name.includes('.return-to.'));
    const before = await kept();
    expect(before.map(({ value }) => decodeURIComponent(value))).toEqual(['/board?of=tab']);
    await show();
    await logInByPopup();
    expect(await kept()).toEqual(before);
    await tab.goto(`${origin()}/login`);
    await approve(tab);
    await tab.waitForURL(`${origin()}/board?of=tab`);
    await tab.close();
  });

  test(
    'scopes that are refused in the popup end in a 403 of the frame, with a session and with identify',
    threats(83),
    async () => {
      for (const options of [
        inFrame({ strategy: { scope: 'project' } }),
        identified({ strategy: { scope: 'project' } }),
      ]) {
        await openSite(options);
        await show();
        await logInByPopup();
        for (const how of ['left out', 'declined']) {
          await show('/deep?refused=own');
          const address = page.frames()[1]?.url() ?? '';
          const popup = await openPopup();
          if (how === 'left out') await popup.getByRole('checkbox', { name: 'tm' }).uncheck();
          const press = popup.getByRole('button', { name: how === 'left out' ? 'Approve' : 'Decline' }).click();
          await Promise.all([popup.waitForEvent('close'), press]);
          await bodyOf().getByText('ERR_INSUFFICIENT_SCOPE').waitFor();
          expect(page.frames()[1]?.url().split('&oauth-app.refused=', 1)).toEqual([address]);
        }
        await show();
        await bodyOf().getByText('"user"').waitFor();
      }
    },
  );

  test('a frame of its own site works with a session that is Strict', async () => {
    await openSite(
      inFrame(sessionWith({ sameSite: 'strict' }), (own) => ({ frameAncestors: [siblingOf(originOf(own))] })),
    );
    await page.goto(`${siblingOf(origin())}/whoami`);
    await page.setContent(`<iframe src="${origin()}/board?x=1"></iframe>`);
    await logInByPopup();
    expect(await bodyOf().innerText()).toContain('"url":"/board?x=1"');
  });
});
