import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Browser } from '../support/browser.js';
import { type Application, startApplication } from './application.js';

let application: Application;
let browser: Browser;

beforeEach(async () => {
  application = await startApplication();
  browser = new Browser();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await application.close();
});

const open = (path: string) => browser.visit(`${application.url}${path}`);
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
    expect(text).toContain('left of 75 s');
    expect(text).toContain('Refreshed <b data-refreshes>never</b>');
  });

  it('count refreshes', async () => {
    await application.logIn(browser);
    application.service.expireAccessTokens();
    await open('/projects');
    expect((await open('/')).text).toContain('Refreshed <b data-refreshes>once</b>');
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

  it('say that a login was declined', async () => {
    const login = await open('/login');
    const callback = await application.service.approve(login.headers.get('location') ?? '', { decline: true });
    const page = await browser.settle(await browser.visit(callback));
    expect(page.url).toBe(`${application.url}/declined`);
    expect(page.text).toContain('You declined');
    expect(application.tokenRequests()).toBe(0);
  });

  it('refuse a callback that was begun elsewhere, without a token request', async () => {
    const page = await open('/callback?code=stolen&state=forged');
    expect(page.status).toBe(403);
    expect(page.text).toContain('not begun here');
    expect(page.text).not.toMatch(/stolen|forged/);
    expect(application.tokenRequests()).toBe(0);
  });

  it('answer an unknown address with a page of their own', async () => {
    const page = await open('/nowhere');
    expect(page.status).toBe(404);
    expect(page.text).toContain('There is nothing here');
  });

  it('explain an outage of the service and get over it', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await application.logIn(browser);
    const mend = application.service.fail('api', {
      status: 400,
      body: { error: 'no' },
      times: Number.POSITIVE_INFINITY,
    });
    const page = await open('/projects');
    expect(page.text).toContain('The service refused the request');
    expect(page.text).not.toMatch(/\bat .*\.(ts|js):\d+/);
    mend();
    expect((await open('/projects')).status).toBe(200);
  });

  it('tell that the service is down, with a status that says so, and nobody is logged out', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    await application.logIn(browser);
    application.service.expireAccessTokens();
    const mend = application.service.fail('token', { status: 503, times: Number.POSITIVE_INFINITY });
    const page = await open('/projects');
    expect(page.status).toBe(503);
    expect(page.text).toContain('The service does not answer');
    expect(log.mock.calls.flat().join('\n')).not.toMatch(/eyJ[\w-]{8}/);
    mend();
    expect((await open('/')).text).toContain('Hello, Ada Ferrant');
  });

  it('refuse forms that another origin sends', async () => {
    await application.logIn(browser);
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:1' },
    ]) {
      expect((await post('/logout', headers)).status).toBe(403);
    }
    expect((await open('/')).text).toContain('Hello, Ada Ferrant');
  });

  it('log out by a form of their own', async () => {
    await application.logIn(browser);
    const page = await post('/logout', { origin: application.url });
    expect(page.status).toBe(303);
    expect((await open('/')).text).toContain('href="/login"');
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
