import { Browser, type Page } from './browser.js';
import type { App, World } from './world.js';

/** A browser that keeps no cookie of express-session: it was not set, or is not sent. */
export class ForgetfulBrowser extends Browser {
  override async visit(...args: Parameters<Browser['visit']>): Promise<Page> {
    const page = await super.visit(...args);
    this.cookies(args[0]).delete('connect.sid');
    return page;
  }
}

/** Makes rounds until a login ends in an error, and returns the cookie that counts them as it was before. @param user Who logs in. */
export async function roundsOf(world: World, user = '1'): Promise<{ readonly name: string; readonly value: string }> {
  const browser = new ForgetfulBrowser();
  for (let round = 0, cookie = { name: '', value: '' }; round < 6; round++) {
    const begun = await browser.visit(`${world.url}/login?returnTo=/page`);
    if (begun.status !== 302) return cookie;
    const callback = await world.service.approve(String(begun.headers.get('location')), { user });
    if ((await browser.visit(callback)).status !== 302) return cookie;
    await browser.visit(`${world.url}/page`);
    const [[name, value] = ['', '']] = [...browser.cookies(world.url)].filter(([each]) => each.includes('rounds'));
    cookie = { name, value };
  }
  throw new Error('It never ends');
}

/** The page /plant, which sets a cookie that counts rounds, for all hosts of `example.test`. */
export class PlantPage {
  #script = '';

  /** Mounts the page: `before` of an application. */
  readonly mount = (app: App): unknown =>
    app.use('/plant', (_req, res) => {
      res.setHeader('Content-Type', 'text/html');
      res.end(`<script>${this.#script}</script>planted`);
    });

  /** Makes rounds at the application until a login ends in an error: their cookie is what the page plants. */
  async arm(world: World): Promise<void> {
    const { name, value } = await roundsOf(world, '2');
    const cookie = `${name}=${value}; Domain=example.test; Path=/; Max-Age=${10 * 365 * 24 * 3600}`;
    this.#script = `document.cookie = ${JSON.stringify(cookie)}`;
  }
}
