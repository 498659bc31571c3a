import { apiPath, type RequestTarget } from '../api/call-request.js';

/**
 * Returns the target that `fetch` or the `next` of a list names: a path below the base address with its query, or a URL,
 * whose origin is checked when the request is made.
 *
 * @throws TypeError for a path that {@link apiPath} refuses, and for a URL with credentials
 */
export function targetOf(input: string | URL): RequestTarget {
  const text = String(input);
  if (input instanceof URL || (/^https?:/i.test(text) && URL.canParse(text))) {
    const { origin, pathname, search, username, password } = new URL(text);
    if (username !== '' || password !== '') throw new TypeError('url: expected a URL without user and password');
    return { path: pathname, query: search, origin, isWholeOrigin: true };
  }
  const [path = '', query = ''] = (text.split('#', 1)[0] ?? '').split(/\?(.*)/s);
  return { path: apiPath(path), query: new URL(`?${query}`, 'http://any.invalid').search, isWholeOrigin: true };
}
