import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COOKIES, inFrame, sessionWith } from '../support/framed.js';
import {
  approve,
  bodyOf,
  identified,
  inChromium,
  logInByPopup,
  openSite,
  origin,
  page,
  show,
} from '../support/framed-page.js';
import { world } from '../support/one-world.js';
import { startPlainApplication } from '../support/plain-application.js';
import { threats } from '../support/threats.js';
import type { Handler, World, WorldOptions } from '../support/world.js';

/** A page that remembers in a cookie, not partitioned, that it was there. */
const control: NonNullable<WorldOptions['before']> = (app) =>
  app.use('/control', (req, res) => {
    res.setHeader('Set-Cookie', 'control=1; SameSite=None; Secure');
    res.end(`cookie: ${req.headers.cookie ?? 'none'}`);
  });

/** The login that leads back to its page, under Connect too. */
const leadsBack = ({ passport }: World) =>
  passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }) as Handler;

// What an application does in a frame of another site, by the session that it has and the way that it logs in.
inChromium('in a frame of the service, in Chromium with third-party cookies %s', {}, (mode) => {
  test(`a page keeps a cookie that is not partitioned: ${mode === 'allowed'}`, async () => {
    await openSite({ before: control });
    const address = await show('/control');
    await bodyOf().getByText('cookie: none').waitFor();
    await page.goto(address);
    await bodyOf()
      .getByText(`cookie: ${mode === 'allowed' ? 'control=1' : 'none'}`)
      .waitFor();
  });

  test(`an application without the package, consent given before, logs in: ${mode === 'allowed'}`, async () => {
    const service = await startEmulator({ profile: 'form', consent: 'remember' });
    const application = await startPlainApplication(service);
    onTestFinished(async () => {
      await application.close();
      await service.close();
    });
    await page.goto(application.origin);
    await approve(page);
    await page.getByText('The documents of the user').waitFor();
    const told = mode === 'allowed' ? 'The documents of the user' : 'You have 3rd party cookies disabled';
    for (let time = 0; time < 2; time++) {
      await page.goto(service.embed(application.origin));
      await bodyOf().getByText(told).waitFor();
    }
  });

  describe.for(['express', 'connect'] as const)('with %s', (framework) => {
    test.for(['lax', 'none'] as const)(
      'a session that is %s is refused before anybody leaves for the consent page',
      threats(93, 94),
      async (kind) => {
        await openSite(inFrame({ ...sessionWith(COOKIES[kind]), framework }));
        // The redirect in the frame, and the button.
        for (const path of ['/login', '/board']) {
          await show(path);
          await bodyOf().getByText('ERR_SESSION_COOKIE').waitFor();
        }
        expect(world.service.requests).toEqual([]);
      },
    );

    test('a redirect to the consent page ends there, since that cannot be framed', async () => {
      await openSite(inFrame({ framework }, {}, { frame: undefined }));
      await show();
      await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/);
      expect(world.service.requests.map(({ path }) => path)).toEqual(['/oauth/authorize']);
    });

    test('a redirect logs in where the service remembers its consent', async () => {
      await openSite({
        ...inFrame({ framework, callback: leadsBack }, {}, { frame: undefined }),
        service: { consent: 'remember' },
      });
      await page.goto(`${origin()}/login`);
      await approve(page);
      await page.waitForURL(`${origin()}/`);
      for (let time = 0; time < 2; time++) {
        await show('/board?x=1');
        await bodyOf().getByText('"url":"/board?x=1').waitFor();
      }
      expect(world.tokenRequests()).toHaveLength(2);
    });

    test('the button logs in, and the frame comes back to its own address', async () => {
      await openSite(inFrame({ framework }));
      const address = await show('/board?x=1');
      await logInByPopup();
      expect(await bodyOf().innerText()).toContain('"url":"/board?x=1');
      await page.goto(address);
      await bodyOf().getByText('"user":{"id":"1"}').waitFor();
      const cookies = await page.context().cookies();
      expect(cookies.map(({ name, partitionKey }) => [name, partitionKey])).toEqual([
        ['connect.sid', 'http://service.localhost'],
      ]);
    });

    test('a signed token logs in without any cookie', threats(95), async () => {
      await openSite(identified({ framework, session: false, authenticate: { session: false } }));
      const address = await show('/board', { userId: '2' });
      await logInByPopup();
      await page.goto(address);
      await bodyOf().getByText('"user":{"id":"2"}').waitFor();
      expect(await page.context().cookies()).toEqual([]);
    });
  });
});
