import { cookieHeader, cookiesOf, getRequest, locationOf } from './connection.mjs';

/**
 * Logs in through an application as a browser does: its login route, the callback with a code, and all cookies on the way.
 *
 * The service's consent page is left out: the code is made up here, and the service takes any. It carries the `nonce` of OpenID
 * Connect, which has to come back in the ID token, and the user.
 *
 * @param {import('./connection.mjs').Connection} connection
 * @param {{ port: number, user: string }} options
 * @returns {Promise<string>} the `Cookie` header of the logged-in browser
 */
export async function logIn(connection, { port, user }) {
  const begun = await connection.send(getRequest('/login', port));
  const target = new URL(locationOf(begun.head) ?? unexpected('login', begun), `http://127.0.0.1:${port}`);
  const cookies = cookiesOf(begun.head);
  const path = target.pathname === '/oauth/authorize' ? callbackPath(target.searchParams, user) : undefined;
  // An application that has no service to ask logs in at once.
  if (path === undefined) return cookieHeader(cookies);
  const finished = await connection.send(getRequest(path, port, { Cookie: cookieHeader(cookies) }));
  const location = finished.status === 302 ? locationOf(finished.head) : undefined;
  if (location === undefined || new URL(location, 'http://127.0.0.1').pathname !== '/')
    unexpected('callback', finished);
  return cookieHeader({ ...cookies, ...cookiesOf(finished.head) });
}

function callbackPath(query, user) {
  const { pathname } = new URL(query.get('redirect_uri'));
  const code = Buffer.from(JSON.stringify({ user, nonce: query.get('nonce') ?? undefined })).toString('base64url');
  return `${pathname}?${new URLSearchParams({ code, state: query.get('state') })}`;
}

function unexpected(route, { status, body }) {
  throw new Error(`The ${route} route answered with ${status}: ${body.slice(0, 300)}`);
}
