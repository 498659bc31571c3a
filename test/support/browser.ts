import { named } from './awaited.js';

/** One answer, with its body read. */
export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly url: string;
  readonly text: string;
  /** The body, parsed. */
  readonly json: () => ReturnType<typeof JSON.parse>;
}

export interface Visit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** As much of a browser as logins need: cookies by host and port, and redirects that are followed or not. */
export class Browser {
  readonly #jars = new Map<string, Map<string, string>>();

  /** One request; redirects are not followed. */
  visit(url: string, visit: Visit = {}): Promise<Page> {
    return named(`the answer to ${visit.method ?? 'GET'} ${url}`, this.#visit(url, visit));
  }

  async #visit(url: string, { method = 'GET', headers = {}, body }: Visit): Promise<Page> {
    const { host } = new URL(url);
    const cookie = this.cookieHeader(url);
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      // A kept connection may end under a request: servers close one that has been idle for five seconds.
      headers: { connection: 'close', accept: 'text/html', ...(cookie ? { cookie } : {}), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    for (const line of response.headers.getSetCookie()) this.#keep(host, line);
    const text = await response.text();
    return { status: response.status, headers: response.headers, url, text, json: () => JSON.parse(text) };
  }

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

  /** The cookies that a URL's host has set. */
  cookies(url: string): Map<string, string> {
    const { host } = new URL(url);
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    this.#jars.set(host, jar);
    return jar;
  }

  /** The header `Cookie` of a request to a URL. */
  cookieHeader(url: string): string {
    return [...this.cookies(url)].map((pair) => pair.join('=')).join('; ');
  }

  /** Forgets all cookies. */
  clear(): void {
    this.#jars.clear();
  }

  #keep(host: string, line: string): void {
    const [pair = '', ...attributes] = line.split(';');
    const name = pair.slice(0, pair.indexOf('='));
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    if (attributes.some((attribute) => /^\s*max-age=0$/i.test(attribute))) jar.delete(name);
    else jar.set(name, pair.slice(pair.indexOf('=') + 1));
    this.#jars.set(host, jar);
  }
}
