import type { CookieJar } from './cookie-jar.js';

/**
 * The same fetch, with cookies. It follows redirects by itself, because fetch would neither see the cookies that are set on the way
 * nor send them. A body is not sent a second time: a 307 or 308 for a request that has one is returned as it is.
 */
export function keepingCookies(fetch: typeof globalThis.fetch, jar: CookieJar): typeof globalThis.fetch {
  return async function fetchWithCookies(input, init) {
    let request = new Request(input, init);
    const { redirect } = request;
    for (let redirects = 0; ; redirects += 1) {
      const response = await fetchOnce(fetch, jar, request);
      const next = redirect === 'follow' ? nextRequest(request, response) : undefined;
      if (next === undefined) return response;
      if (redirects === 20) throw new TypeError('The application redirected more than 20 times.');
      request = next;
    }
  };
}

async function fetchOnce(fetch: typeof globalThis.fetch, jar: CookieJar, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const cookie = jar.header(url);
  if (cookie !== '') request.headers.set('cookie', cookie);
  const response = await fetch(request, { redirect: request.redirect === 'follow' ? 'manual' : request.redirect });
  jar.take(url, response.headers.getSetCookie());
  return response;
}

function nextRequest(request: Request, { status, headers }: Response): Request | undefined {
  const location = headers.get('location');
  if (location === null || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const isSame = status > 303;
  if (isSame && request.body !== null) return undefined;
  const url = new URL(location, request.url);
  const kept = new Headers(request.headers);
  for (const name of ['cookie', 'content-type', 'content-length']) kept.delete(name);
  if (url.origin !== new URL(request.url).origin) kept.delete('authorization');
  const method = isSame || request.method === 'HEAD' ? request.method : 'GET';
  return new Request(url, { method, headers: kept, signal: request.signal });
}
