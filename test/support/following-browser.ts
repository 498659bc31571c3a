import { Browser, type Page } from './browser.js';

/** A browser that follows redirects when it is told to. */
export class FollowingBrowser extends Browser {
  /** Follows redirects from a page for as long as they stay on its own host. */
  async settle(page: Page): Promise<Page> {
    let current = page;
    for (let hops = 0; hops < 10 && current.status >= 300 && current.status < 400; hops++) {
      const next = new URL(current.headers.get('location') ?? '', current.url);
      if (next.host !== new URL(page.url).host) return current;
      current = await this.visit(next.href);
    }
    return current;
  }

  /** Presses a button of the consent page that a page has led to. @returns The page of the application that this ends at */
  async decide(page: Page, decision: 'approve' | 'decline', user = '1'): Promise<Page> {
    const consent = new URL(page.headers.get('location') ?? '');
    await this.visit(consent.href);
    const form = new URLSearchParams(consent.search);
    form.set('user', user);
    form.set('decision', decision);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const target = `${consent.origin}${consent.pathname}`;
    const decided = await this.visit(target, { method: 'POST', headers, body: form.toString() });
    return this.settle(await this.visit(decided.headers.get('location') ?? ''));
  }
}
