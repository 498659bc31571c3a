import { Browser, type Page } from './browser.js';
import type { World } from './world.js';

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
