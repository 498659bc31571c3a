import { describe, expect, it } from 'vitest';
import { FollowingBrowser } from '../support/following-browser.js';
import { advance, application, browser, movedClock, open, restart, startBeforeEach } from './application.js';

startBeforeEach();

/** The server-sent events of a browser's panel, until `wanted` is among them. */
async function listenUntil(visitor: FollowingBrowser, wanted: RegExp, meanwhile = async () => {}): Promise<string> {
  const url = `${application.url}/panel/events`;
  const cookie = visitor.cookieHeader(url);
  const response = await fetch(url, { headers: { cookie } });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let heard = '';
  const listening = (async () => {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      heard += part.value;
      if (wanted.test(heard)) return;
    }
  })();
  await meanwhile();
  await listening;
  await reader?.cancel();
  return heard;
}

const projects = (visitor: FollowingBrowser) =>
  visitor.visit(`${application.url}/projects`, { headers: { accept: '*/*' } });

describe('the panel', () => {
  it('sends nothing to a visitor who is not logged in', async () => {
    expect((await browser.visit(`${application.url}/panel/events`)).status).toBe(204);
  });

  it('shows the login, with what the service received for it', async () => {
    await application.logIn(browser);
    const heard = await listenUntil(browser, /event: parts/);
    expect(heard).toContain('Logged in');
    expect(heard).toContain('grant_type=authorization_code');
    expect(heard.match(/\/oauth\/authorize/g)).toHaveLength(2);
  });

  it('shows a refresh as it happens, and draws the new token', async () => {
    await application.logIn(browser);
    const heard = await listenUntil(browser, /Refreshed <b>once/, async () => {
      application.service.expireAccessTokens();
      await projects(browser);
    });
    expect(heard).toContain('Token refreshed');
    expect(heard).toContain('grant_type=refresh_token');
    expect(heard).toContain('<title>Token 2</title>');
  });

  it('keeps the token of an open page fresh, before it expires', async () => {
    await restart({ ...movedClock, tokenLifetime: 7200 });
    await application.logIn(browser);
    const heard = await listenUntil(browser, /Refreshed <b>once/, async () => {
      advance(7100 * 1000);
    });
    expect(heard).toContain('before it expired');
    expect(application.tokenRequests()).toBe(2);
  });

  it('shows each API call, with the host that it went to', async () => {
    await application.logIn(browser, '2');
    const heard = await listenUntil(browser, /GET \/projects/, async () => {
      await projects(browser);
    });
    expect(heard).toContain('acme.api.localhost');
  });

  it('makes API calls by itself while a page is open, so that an outage shows', async () => {
    await application.logIn(browser);
    await listenUntil(browser, /GET \/projects/);
    expect(application.service.requests.at(-1)?.path).toBe('/api/v2/projects');
  });

  it('shares a line among calls that went alike, on a page that is loaded too', async () => {
    await application.logIn(browser);
    for (let calls = 0; calls < 3; calls += 1) await projects(browser);
    const { text } = await open('/');
    expect(text).toContain('3 × GET /projects');
    expect(text.match(/<li class="entry"/g)).toHaveLength(2);
  });

  it('shows nobody what others do', async () => {
    const other = new FollowingBrowser();
    await application.logIn(browser, '1');
    await application.logIn(other, '2');
    const heard = await listenUntil(browser, /Refreshed <b>once/, async () => {
      await projects(other);
      application.service.expireAccessTokens();
      await projects(other);
      await projects(browser);
    });
    expect(heard).not.toMatch(/acme|Okafor|Refreshed <b>2 times/);
  });

  it('never holds a secret', async () => {
    await application.logIn(browser);
    const heard = await listenUntil(browser, /Refreshed <b>once/, async () => {
      application.service.expireAccessTokens();
      await projects(browser);
    });
    const page = await open('/');
    const secrets = application.service.requests.flatMap(({ body, headers, query }) => [
      headers.authorization?.replace('Bearer ', ''),
      query.state,
      ...(typeof body === 'object' && body !== null
        ? [Reflect.get(body, 'code'), Reflect.get(body, 'client_secret'), Reflect.get(body, 'refresh_token')]
        : []),
    ]);
    const known = secrets.filter((secret): secret is string => typeof secret === 'string' && secret !== '');
    expect(known.length).toBeGreaterThan(5);
    for (const secret of known) {
      expect(heard).not.toContain(secret);
      expect(page.text).not.toContain(secret);
    }
  });

  it('ends with the login', async () => {
    await application.logIn(browser);
    const heard = await listenUntil(browser, /event: end/, async () => {
      await browser.visit(`${application.url}/logout`, { method: 'POST' });
    });
    expect(heard).toContain('Log in again.');
  });

  it('does not keep the application from ending', async () => {
    await application.logIn(browser);
    const url = `${application.url}/panel/events`;
    const cookie = browser.cookieHeader(url);
    const response = await fetch(url, { headers: { cookie } });
    await application.close();
    expect(await response.text()).toContain('event: parts');
  });
});
