import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import compression182 from 'compression';
import compression174 from 'compression-1.7';
import compression181 from 'compression-1.8.1';
import timeout from 'connect-timeout';
import helmet from 'helmet';
import { memoryTokenStore } from 'passport-oauth-app';
import { expect, test } from 'vitest';
import { answering, COOKIES, dataOf, FramedBrowser, inFrame, sessionWith } from '../support/framed.js';
import { open } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import type { App, Handler } from '../support/world.js';

// Longer than compression's threshold.
const TEXT = 'welcome '.repeat(500);

const ANSWERS: Record<string, (res: ServerResponse) => unknown> = {
  end: (res) => res.end(TEXT),
  writeHead: (res) => res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': TEXT.length }).end(TEXT),
  pieces: (res) => {
    for (const piece of [TEXT, TEXT]) res.write(piece);
    res.end();
  },
  pipe: (res) => Readable.from([TEXT, TEXT]).pipe(res),
};

const WRAPPERS = {
  'compression 1.7.4': () => compression174(),
  'compression 1.8.1': () => compression181(),
  'compression 1.8.2': () => compression182(),
  helmet: () => helmet() as never,
  'connect-timeout': () => timeout('60s'),
} satisfies Record<string, () => Handler>;

for (const [name, wrapper] of Object.entries(WRAPPERS))
  for (const place of ['before', 'beforeClient'] as const)
    test(`the pages of a popup are readable with ${name}, ${place}`, threats(126), async () => {
      const own = sessionWith(COOKIES.partitioned);
      const mount = (app: App) => {
        if (place === 'before') own.before?.(app);
        app.use((_req, res, next) => next(void res.setHeader('Content-Type', 'text/html')));
        app.use(wrapper());
      };
      const current = { answer: ANSWERS.end, status: 200 };
      const tokenStore = memoryTokenStore();
      const world = await open(
        inFrame({
          ...own,
          strategy: { tokenStore },
          [place]: mount,
          callback: answering((_req, res) => current.answer?.(Object.assign(res, { statusCode: current.status }))),
        }),
      );
      world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${world.url}/callback`] });
      const browser = new FramedBrowser(world);
      const { verifier, ...button } = dataOf(await browser.load());
      for (const [how, answer] of Object.entries(ANSWERS)) {
        Object.assign(current, { answer, status: 200 });
        const end = await browser.logIn(button);
        expect([how, end.status, end.headers.get('cross-origin-opener-policy')]).toEqual([how, 200, null]);
        expect((await browser.take({ code: dataOf(end).code, verifier })).status).toBe(204);
        expect((await browser.load()).status).toBe(200);
        if (how === 'writeHead') continue;
        current.status = 403;
        const refused = await browser.logIn(button);
        expect([how, refused.status, refused.text.slice(0, TEXT.length)]).toEqual([how, 403, TEXT]);
      }
      const { set } = tokenStore;
      tokenStore.set = async (id, grant) =>
        id.startsWith('frame:') ? Promise.reject(new Error('down')) : set(id, grant);
      for (const answer of Object.values(ANSWERS)) {
        Object.assign(current, { answer, status: 200 });
        const failed = await browser.logIn(button);
        expect([failed.status, failed.json().code]).toEqual([503, 'ERR_TOKEN_STORE']);
      }
    });
