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

/** Makes three rounds, and returns the cookie that counts them. */
export async function threeRounds(world: World): Promise<{ readonly name: string; readonly value: string }> {
  const browser = new ForgetfulBrowser();
  for (let round = 0; round < 3; round++) await browser.visit(await world.begin(browser, {}, '/login?returnTo=/page'));
  const [[name, value] = ['', '']] = [...browser.cookies(world.url)].filter(([each]) => each.includes('rounds'));
  return { name, value };
}
