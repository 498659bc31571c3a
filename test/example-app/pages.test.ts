import { describe, expect, it, vi } from 'vitest';
import { application, browser, decide, open, startBeforeEach } from './application.js';

startBeforeEach();

const post = (path: string, headers = {}) => browser.visit(`${application.url}${path}`, { method: 'POST', headers });

describe('the pages of the example', () => {
  it('invite whoever is not logged in', async () => {
    const page = await open('/');
    expect(page.status).toBe(200);
    expect(page.text).toContain('href="/login"');
    expect(page.headers.getSetCookie()).toEqual([]);
  });

  it('tell who is logged in, where requests go and how the token is doing', async () => {
    await application.logIn(browser, '2');
    const { text } = await open('/');
    expect(text).toContain('Hello, Ben Okafor');
    expect(text).toContain('acme.api.localhost');
    expect(text).toContain('left of 45 s');
    expect(text).toContain('Not refreshed yet.');
    expect(text).toContain('>Log in as another user</a>');
  });

  it('list the projects with their progress', async () => {
    await application.logIn(browser);
    const { status, text } = await open('/projects');
    expect(status).toBe(200);
    expect(text).toContain('Pocket Garden');
    expect(text).toMatch(/<progress max="100" value="86" aria-label="Progress of Pocket Garden">/);
  });

  it('show projects of any name as they are', async () => {
    const name = '<script>alert("1")</script>';
    application.service.addUser({ id: '9', name, projects: [{ id: 1, name, progress: 3 }] });
    await application.logIn(browser, '9');
    for (const path of ['/', '/projects']) {
      const { text } = await open(path);
      expect(text).not.toContain('<script>alert');
      expect(text).toContain('&#60;script&#62;');
    }
  });

  it('send nothing but their own files, and no token, to the browser', async () => {
    await application.logIn(browser);
    const { text, headers } = await open('/');
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text).not.toMatch(/<style|style=|<script>|eyJ[\w-]{8}/);
  });

  it('ask for one permission more where it is needed, and say so where it is refused', async () => {
    await application.logIn(browser);
    const refused = await decide('/glossary', { scope: ['project', 'tm'] });
    expect([refused.status, refused.url]).toEqual([403, `${application.url}/glossary`]);
    expect(refused.text).toContain('You did not allow glossary');
    const click = { 'sec-fetch-user': '?1', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' };
    const page = await decide('/glossary', {}, { headers: click });
    expect(page.url).toBe(`${application.url}/glossary`);
    expect(page.text).toContain('<code>glossary</code>');
  });

  it('say that a login was declined', async () => {
    const page = await decide('/login', { decline: true });
    expect(page.url).toBe(`${application.url}/declined`);
    expect(page.text).toContain('You declined');
    expect(page.text).toContain('gave this application no access');
    expect(application.tokenRequests()).toBe(0);
  });

  it('say that nothing changed where somebody declines who is logged in', async () => {
    await application.logIn(browser);
    const page = await decide('/login', { decline: true });
    expect(page.text).toContain('You are still logged in as Ada Ferrant');
    expect(page.text).not.toContain('nothing.');
  });

  it.each(['the callback comes again', 'the same request is approved again'])(
    'lead home where somebody is logged in and goes back, and %s',
    async (how) => {
      const login = await open('/login');
      const authorize = login.headers.get('location') ?? '';
      const callback = await application.service.approve(authorize);
      await browser.settle(await browser.visit(callback));
      const next = how.startsWith('the callback') ? callback : await application.service.approve(authorize);
      const page = await browser.settle(await browser.visit(next));
      expect(page.status).toBe(200);
      expect(page.text).toContain('Hello, Ada Ferrant');
      expect(application.tokenRequests()).toBe(1);
    },
  );

  it('refuse a callback that was begun elsewhere, without a token request', async () => {
    const page = await open('/callback?code=stolen&state=forged');
    expect(page.status).toBe(403);
    expect(page.text).toContain('did not start here');
    expect(page.text).not.toMatch(/stolen|forged/);
    expect(application.tokenRequests()).toBe(0);
  });

  it('answer an unknown address with a page of their own', async () => {
    const page = await open('/nowhere');
    expect(page.status).toBe(404);
    expect(page.text).toContain('Page not found');
  });

  it('explain a refusal of the service and get over it', async () => {
    await application.logIn(browser);
    const mend = application.service.fail('api', { status: 400, body: { error: 'no' }, times: Infinity });
    const page = await open('/projects');
    expect(page.text).toContain('The service rejected the request');
    expect(page.text).not.toMatch(/\bat .*\.(ts|js):\d+/);
    mend();
    expect((await open('/projects')).status).toBe(200);
  });

  it('tell that the service is down, with a status that says so, and nobody is logged out', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    await application.logIn(browser);
    application.service.expireAccessTokens();
    const fault = { status: 503, headers: { 'retry-after': '7' }, times: Infinity };
    const mend = application.service.fail('token', fault);
    const page = await open('/projects');
    expect(page.status).toBe(503);
    expect(page.headers.get('retry-after')).toBe('7');
    expect(page.text).toContain('The service is not responding');
    expect(page.text).toContain('You are still logged in');
    expect(page.text).toContain('Wait <b>7 s</b>');
    expect(page.text).toContain('data-wait="7"');
    expect(log.mock.calls.flat().join('\n')).not.toMatch(/eyJ[\w-]{8}/);
    mend();
    expect((await open('/')).text).toContain('Hello, Ada Ferrant');
  });

  it('do not call somebody logged in whose login met an outage', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    application.service.fail('token', { status: 503 });
    const page = await application.logIn(browser);
    expect(page.status).toBe(503);
    expect(page.text).toContain('You are not logged in yet');
    expect(page.text).not.toContain('still logged in');
  });

  it.each([
    { status: 503, title: 'The service has a problem' },
    { status: 500, title: 'The service has a problem' },
    { status: 429, title: 'Too many requests' },
  ])('ask for patience where the API answers $status, and say for how long', async ({ status, title }) => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await application.logIn(browser);
    application.service.fail('api', { status, headers: { 'retry-after': '3600' }, times: Infinity });
    const page = await open('/projects');
    expect(page.status).toBe(status);
    expect(page.text).toContain(title);
    expect(page.text).toContain('Wait <b>3600 s</b>');
    expect(page.text).not.toContain('refused');
  });

  it('refuse forms that another origin sends', async () => {
    await application.logIn(browser);
    const foreign = [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }];
    for (const headers of [...foreign, { origin: 'http://localhost:1' }]) {
      expect((await post('/logout', headers)).status).toBe(403);
    }
    expect((await open('/')).text).toContain('Hello, Ada Ferrant');
  });

  it('log out by a form of their own', async () => {
    await application.logIn(browser);
    const page = await post('/logout', { origin: application.url });
    expect(page.status).toBe(303);
    expect((await open('/')).text).toContain('Log in once');
  });

  it('switch to another account and its organization by logging in anew', async () => {
    await application.logIn(browser, '1');
    await application.logIn(browser, '3');
    const { text } = await open('/projects');
    expect(text).toContain('Northwind Fleet');
    expect(text).not.toContain('Pocket Garden');
    expect(text).toContain('northwind.api.localhost');
  });
});
