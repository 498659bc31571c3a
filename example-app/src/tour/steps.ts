import type { Guide } from './guide.js';
import { TourError } from './report.js';
import type { Visitor } from './visitor.js';

/** Logs in from a page that needs it, and gets back to that page. */
export async function logIn(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness, url } = guide;
  report.step('A page that needs a login sends the browser to it');
  const page = await guide.open(visitor, '/projects');
  report.check('302 to /login', page.status === 302 && page.location?.pathname === '/login');

  const callback = await guide.decide(visitor, await guide.authorize(visitor), '1', 'approve');
  const code = callback.searchParams.get('code') ?? '';
  report.check('a code came', code !== '');

  report.step('The application exchanges the code for tokens');
  const done = await guide.open(visitor, callback);
  report.check('back to the page that was asked for', done.location?.pathname === '/projects');
  const { tokens } = witness.news();
  report.check('one token request', tokens.length === 1);
  witness.checkTokenRequest(tokens[0], {
    grant_type: 'authorization_code',
    redirect_uri: `${url}/callback`,
    code,
  });
  await firstCall(guide, visitor);
}

async function firstCall(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness, service } = guide;
  report.step('The page lists the projects of the user');
  await guide.projects(visitor, 'Pocket Garden');
  const [call] = witness.news().api;
  const { host } = new URL(service.baseUrl);
  report.check('GET {base_url}/api/v2/projects', call?.path === '/api/v2/projects' && call.headers.host === host);
  report.check('with a bearer token', witness.bearer(call) !== '');
}

/** Lets the token expire twice: the second refresh uses the refresh token that the first one returned. */
export async function refresh(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness } = guide;
  const bearers: string[] = [];
  for (const title of ['The access token expires: the next request refreshes it first', 'And once more']) {
    report.step(title);
    guide.expire();
    await guide.projects(visitor, 'Pocket Garden');
    const news = witness.news();
    guide.checkRefresh(news);
    bearers.push(witness.bearer(news.api[0]));
  }
  report.check('the API requests carried different tokens', new Set(bearers).size === 2);
}

/** Lets the service refuse a token that should still be good. */
export async function refuseToken(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness } = guide;
  report.step('The service refuses the token before its time');
  guide.service.expireAccessTokens();
  await guide.projects(visitor, 'Pocket Garden');
  const news = witness.news();
  guide.checkRefresh(news);
  const [refused, again] = news.api.map((call) => witness.bearer(call));
  report.check('the request was made once more, with the new token', news.api.length === 2 && refused !== again);
}

/** Sends many requests that meet the same expired token. */
export async function manyAtOnce(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness, url } = guide;
  report.step('Twenty requests at once meet an expired token');
  guide.expire();
  const pages = await Promise.all(Array.from({ length: 20 }, () => visitor.get(`${url}/projects`)));
  report.note(`20 times GET ${url}/projects -> ${[...new Set(pages.map(({ status }) => status))].join(', ')}`);
  report.check(
    'all twenty succeed',
    pages.every(({ status }) => status === 200),
  );
  guide.checkRefresh(witness.news());
}

/** Logs a member of an organization in. */
export async function enterprise(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness, service } = guide;
  const callback = await guide.decide(visitor, await guide.authorize(visitor), '2', 'approve');
  await guide.open(visitor, callback);
  witness.news();
  report.step("A member of an organization is served by the organization's own host");
  await guide.projects(visitor, 'Acme Storefront');
  const { api } = witness.news();
  const { host } = new URL(service.enterpriseBaseUrl.replace('{domain}', 'acme'));
  const isThere = api.length === 1 && api[0]?.headers.host === host;
  report.check('GET {enterprise_base_url}/api/v2/projects', isThere && api[0]?.path === '/api/v2/projects');
}

/** Declines. */
export async function decline(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness } = guide;
  const callback = await guide.decide(visitor, await guide.authorize(visitor), '1', 'decline');
  report.check('error=access_denied came', callback.searchParams.get('error') === 'access_denied');
  report.step('The application says that the login was declined');
  const answer = await guide.open(visitor, callback);
  report.check('it goes on to its own page', answer.location?.pathname === '/declined');
  const page = await guide.open(visitor, '/declined');
  report.check('the page says so', page.status === 200 && page.text.includes('You declined'));
  report.check('no token request', witness.news().tokens.length === 0);
}

/** Opens a callback that was not begun in this browser. */
export async function forge(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness } = guide;
  report.step('A callback that was not begun in this browser is refused');
  const page = await guide.open(visitor, '/callback?code=stolen-code&state=forged-state');
  report.check('403', page.status === 403);
  report.check('no token request', witness.news().tokens.length === 0);
}

/** Begins a login with a redirect URL that is not registered. */
export async function unregistered(guide: Guide, visitor: Visitor): Promise<void> {
  const { report } = guide;
  report.step('The service redirects to no address that is not registered');
  const { location } = await visitor.get(`${guide.url}/login`);
  if (!location) throw new TourError('the login did not redirect');
  location.searchParams.set('redirect_uri', 'http://localhost:1/elsewhere');
  const answer = await visitor.get(location);
  report.answer(answer);
  report.check('a page instead of a redirect', answer.status === 400 && !answer.location);
}

/** Logs out. */
export async function logOut(guide: Guide, visitor: Visitor): Promise<void> {
  const { report, witness } = guide;
  report.step('Logging out forgets the tokens');
  const answer = await visitor.post(`${guide.url}/logout`);
  report.answer(answer);
  report.check('back to the home page', answer.status === 303 && answer.location?.pathname === '/');
  const page = await guide.open(visitor, '/projects');
  report.check('projects need a login again', page.location?.pathname === '/login');
  const { tokens, api } = witness.news();
  report.check('nothing reached the service', tokens.length + api.length === 0);
}
