/** Stores cookies by host, as far as a test needs it: names, values and removal. Paths and ports make no difference. */
export class CookieJar {
  readonly #byHost = new Map<string, Map<string, string>>();

  /** Returns the `Cookie` header for a request to this URL; empty if there is none. */
  header(url: URL): string {
    return [...(this.#byHost.get(url.hostname) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Stores the `Set-Cookie` headers of a response from this URL. */
  store(url: URL, setCookies: readonly string[]): void {
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

/**
 * Returns a fetch that keeps cookies. It follows redirects itself, because fetch would neither see the cookies on the way nor send them.
 * It never sends a body twice: the 307 or 308 to a request with a body is returned.
 */
export function cookieFetch(fetch: typeof globalThis.fetch, jar: CookieJar): typeof globalThis.fetch {
  return async function fetchWithCookies(input, init) {
    let request = new Request(input, init);
    const { redirect } = request;
    for (let redirects = 0; ; redirects += 1) {
      const url = new URL(request.url);
      const cookie = jar.header(url);
      if (cookie !== '') request.headers.set('cookie', cookie);
      const response = await fetch(request, { redirect: redirect === 'follow' ? 'manual' : redirect });
      jar.store(url, response.headers.getSetCookie());
      const next = redirect === 'follow' ? redirectedRequest(request, response) : undefined;
      if (next === undefined) return response;
      if (redirects === 20) throw new TypeError('The application redirected more than 20 times.');
      request = next;
    }
  };
}

function redirectedRequest(request: Request, { status, headers }: Response): Request | undefined {
  const location = headers.get('location');
  if (location === null || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const keepsMethod = status > 303;
  if (keepsMethod && request.body !== null) return undefined;
  const url = new URL(location, request.url);
  const kept = new Headers(request.headers);
  for (const name of ['cookie', 'content-type', 'content-length']) kept.delete(name);
  if (url.origin !== new URL(request.url).origin) kept.delete('authorization');
  const method = keepsMethod || request.method === 'HEAD' ? request.method : 'GET';
  return new Request(url, { method, headers: kept, signal: request.signal });
}
