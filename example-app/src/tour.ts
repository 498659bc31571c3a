import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Emulator, ServiceRequest } from 'passport-oauth-app/emulator';
import request from 'supertest';
import { startExample } from './example.js';
import { bearerOf, detailOf, fieldsOf, shortenedFields } from './panel/recorder.js';
import { serverSettings } from './server.js';

/** Keeps the cookies of one person, and follows no redirect unseen. */
type Visitor = ReturnType<typeof request.agent>;

/** Seconds. The tour moves the clock instead of waiting. */
const tokenLifetime = 7200;
const mostShown = 4;

/**
 * Walks through everything that the application does, over real HTTP, and checks what the service received.
 *
 * @param print Takes one line.
 * @throws {AssertionError} at the first step that did not do what it should
 */
export async function tour(print: (line: string) => void): Promise<void> {
  let movedMs = 0;
  const expire = () => {
    movedMs += (tokenLifetime + 1) * 1000;
  };
  const settings = { ...serverSettings({}), port: 0, tokenLifetime, clock: () => Date.now() + movedMs };
  const { url, service, close } = await startExample(settings);
  try {
    if (service) print(`\nAll ${await walk(url, service, expire, print)} steps did what they should.`);
  } finally {
    await close();
  }
}

async function walk(url: string, service: Emulator, expire: () => void, print: (line: string) => void) {
  const { clientID: client_id, clientSecret: client_secret, baseUrl, enterpriseBaseUrl } = service.options;
  const redirect_uri = `${url}/callback`;
  let steps = 0;
  let usedRefreshToken: unknown;
  const step = (title: string) => {
    steps += 1;
    print(`\n${String(steps).padStart(2)}. ${title}`);
  };
  const check = (what: string, holds: boolean) => {
    assert(holds, `Not as it should be: ${what}`);
    print(`    ok: ${what}`);
  };
  const open = async (visitor: Visitor, address: string, method: 'get' | 'post' = 'get') => {
    const target = new URL(address, url);
    // Scripts are not redirected to a login, so it asks for a page.
    const { status, text, headers } = await visitor[method](target.pathname + target.search).accept('text/html');
    const location: string = headers.location ?? '';
    const leads = location && ` to ${shown(new URL(location, url))}`;
    print(`    ${method.toUpperCase()} ${shown(target)} -> ${status}${leads}`);
    return { status, text, location };
  };
  /** Returns the requests to the token endpoint and to the API since the last call, and prints the first of them. */
  const news = () => {
    const requests = service.requests.splice(0).filter(({ path }) => !path.startsWith('/oauth/authorize'));
    for (const one of requests.slice(0, mostShown))
      print(`    service: ${one.method} http://${one.headers.host}${one.path} ${detailOf(one)}`);
    const more = requests.length - mostShown;
    if (more > 0) print(`    service: and ${more} more requests like the last one`);
    const tokens = requests.filter(({ path }) => path === '/oauth/token');
    return { tokens, api: requests.filter((one) => !tokens.includes(one)) };
  };
  const checkTokenRequest = ([one, ...more]: readonly ServiceRequest[], fields: Readonly<Record<string, unknown>>) => {
    check('one token request', one !== undefined && more.length === 0);
    const isJson = one?.headers['content-type']?.startsWith('application/json') === true;
    check('a POST with a JSON body', one?.method === 'POST' && isJson);
    const expected = { client_id, client_secret, ...fields };
    check(`its fields are exactly ${Object.keys(expected).join(', ')}`, isDeepStrictEqual(one?.body, expected));
  };
  const checkRefresh = (tokens: readonly ServiceRequest[]) => {
    const { refresh_token } = tokens[0] ? fieldsOf(tokens[0]) : {};
    checkTokenRequest(tokens, { grant_type: 'refresh_token', refresh_token });
    check('its refresh token was not used before', refresh_token !== usedRefreshToken);
    usedRefreshToken = refresh_token;
  };
  /** Opens the page with the projects, which has to show one of this name. @returns The bearer tokens that it took. */
  const projects = async (visitor: Visitor, name: string, base: string, refreshes = true) => {
    const page = await open(visitor, '/projects');
    check(`the page shows ${name}`, page.status === 200 && page.text.includes(name));
    const { tokens, api } = news();
    if (refreshes) checkRefresh(tokens);
    const { host } = new URL(base);
    const isRight = (one: ServiceRequest) =>
      one.path === '/api/v2/projects' && one.headers.host === host && bearerOf(one) !== '';
    check(`GET ${host}/api/v2/projects with a bearer token`, api.length > 0 && api.every(isRight));
    return api.map(bearerOf);
  };
  /** Goes through the consent page. @returns The callback. */
  const decide = async (visitor: Visitor, user: string, decline = false) => {
    step('The login sends the browser to the service');
    const authorize = new URL((await open(visitor, '/login')).location, url);
    const { state = '', ...others } = Object.fromEntries(authorize.searchParams);
    const expected = { client_id, redirect_uri, response_type: 'code', scope: 'project tm' };
    check('to {auth_url}/oauth/authorize', authorize.href.startsWith(`${service.authUrl}/oauth/authorize?`));
    check('client_id, redirect_uri, response_type, scope and state, nothing else', isDeepStrictEqual(others, expected));
    check('spaces in scope are plus signs', authorize.search.includes('scope=project+tm'));
    check('state cannot be guessed', state.length >= 43);
    step(decline ? 'The user declines' : 'The user approves');
    const callback = new URL(await service.approve(authorize, { user, decline }));
    print(`    to ${shown(callback)}`);
    check('back to the application, with its state unchanged', callback.searchParams.get('state') === state);
    return callback;
  };
  const leadsTo = async (what: string, path: string, visitor: Visitor, address: string, method?: 'post') =>
    check(what, (await open(visitor, address, method)).location.split('?')[0] === path);
  const silent = () => {
    const { tokens, api } = news();
    check('nothing reached the token endpoint or the API', tokens.length + api.length === 0);
  };

  const ada = request.agent(url);
  step('A page that needs a login sends the browser to it');
  await leadsTo('to /login', '/login', ada, '/projects');
  const { href, searchParams } = await decide(ada, '1');
  step('The application exchanges the code for tokens');
  await leadsTo('back to the page that was asked for', '/projects', ada, href);
  checkTokenRequest(news().tokens, { grant_type: 'authorization_code', redirect_uri, code: searchParams.get('code') });
  step('The page lists the projects of the user');
  await projects(ada, 'Pocket Garden', baseUrl, false);
  // The second refresh uses the refresh token that the first one returned.
  for (const title of ['The access token expires: the next request refreshes it first', 'And once more']) {
    step(title);
    expire();
    await projects(ada, 'Pocket Garden', baseUrl);
  }
  step('The service refuses the token before its time');
  service.expireAccessTokens();
  const bearers = await projects(ada, 'Pocket Garden', baseUrl);
  check('the request was made once more, with the new token', bearers.length === 2 && new Set(bearers).size === 2);
  step('Twenty requests at once meet an expired token');
  expire();
  const pages = await Promise.all(Array.from({ length: 20 }, () => ada.get('/projects')));
  const areGood = pages.every(({ status }) => status === 200);
  check('all twenty succeed', areGood);
  checkRefresh(news().tokens);

  const ben = request.agent(url);
  await open(ben, (await decide(ben, '2')).href);
  news();
  step("A member of an organization is served by the organization's own host");
  await projects(ben, 'Acme Storefront', enterpriseBaseUrl.replace('{domain}', 'acme'), false);

  const stranger = request.agent(url);
  const refusal = await decide(stranger, '1', true);
  step('The application says that the login was declined');
  await leadsTo('it goes on to its own page', '/declined', stranger, refusal.href);
  check('the page says so', (await open(stranger, '/declined')).text.includes('You declined'));
  silent();
  step('A callback that was not begun in this browser is refused');
  check('403', (await open(stranger, '/callback?code=stolen-code&state=forged-state')).status === 403);
  silent();
  step('Logging out forgets the tokens');
  await leadsTo('back to the home page', '/', ada, '/logout', 'post');
  await leadsTo('projects need a login again', '/login', ada, '/projects');
  silent();
  return steps;
}

/** Returns an address with its secrets shortened. */
function shown({ origin, pathname, searchParams }: URL): string {
  const fields = shortenedFields(Object.fromEntries(searchParams), '&');
  return `${origin}${pathname}${fields && `?${fields}`}`;
}
