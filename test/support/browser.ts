import { named } from './awaited.js';

/** One answer, with its body read. */
export interface Page extends Pick<Response, 'status' | 'headers' | 'url'> {
  readonly text: string;
  /** The body, parsed. */
  readonly json: () => ReturnType<typeof JSON.parse>;
}

export type Visit = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };

/** As much of a browser as logins need: cookies by host and port. */
export class Browser {
  readonly #jars = new Map<string, Map<string, string>>();

  /** One request; redirects are not followed. */
  async visit(url: string, { method = 'GET', headers, ...body }: Visit = {}): Promise<Page> {
    const cookie = this.cookieHeader(url);
    // A kept connection may end under a request: servers close one that has been idle for five seconds.
    const sent = { connection: 'close', accept: 'text/html', ...(cookie && { cookie }), ...headers };
    const request = fetch(url, { method, redirect: 'manual', headers: sent, ...body });
    const response = await named(`the answer to ${method} ${url}`, request);
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=;]*)=?([^;]*)/.exec(line) ?? [];
      if (/;\s*max-age=0\s*(;|$)/i.test(line)) this.cookies(url).delete(name);
      else this.cookies(url).set(name, value);
    }
    const text = await named(`the rest of the answer to ${method} ${url}`, response.text());
    return { status: response.status, headers: response.headers, url, text, json: () => JSON.parse(text) };
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
}
