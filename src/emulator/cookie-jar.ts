/** Keeps cookies by host, as far as a test needs it: names, values and removal. Paths and ports make no difference. */
export class CookieJar {
  readonly #byHost = new Map<string, Map<string, string>>();

  /** The header `Cookie` for a request to this URL; empty if there is none. */
  header(url: URL): string {
    return [...(this.#byHost.get(url.hostname) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Takes the `Set-Cookie` headers of an answer from this URL. */
  take(url: URL, setCookies: readonly string[]): void {
    const cookies = this.#byHost.get(url.hostname) ?? new Map<string, string>();
    this.#byHost.set(url.hostname, cookies);
    for (const setCookie of setCookies) {
      const [pair = ''] = setCookie.split(';', 1);
      const mark = pair.indexOf('=');
      const name = pair.slice(0, mark).trim();
      if (isRemoval(setCookie)) cookies.delete(name);
      else cookies.set(name, pair.slice(mark + 1).trim());
    }
  }
}

function isRemoval(setCookie: string): boolean {
  if (/;\s*max-age=(0|-\d+)\s*(;|$)/i.test(setCookie)) return true;
  const [, expires] = /;\s*expires=([^;]+)/i.exec(setCookie) ?? [];
  return expires !== undefined && !/;\s*max-age=/i.test(setCookie) && Date.parse(expires) <= Date.now();
}
