import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { incidentGroups } from '../../example-app/src/incidents/catalogue.js';
import { FollowingBrowser } from '../support/following-browser.js';
import { advance, application, browser, movedClock, open, startBeforeEach } from './application.js';

startBeforeEach(movedClock);
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  await application.logIn(browser);
});

const press = (name: string) => application.incident(browser, name);
const statuses = async () => (await open('/projects')).status;

/** Mends everything, and lets the time pass in which calls fail fast. */
async function mend(): Promise<void> {
  await press('mend');
  advance(60_000);
}

describe('the incidents of the example', () => {
  it('have a button each, beside three lines of code that stand in the application', async () => {
    const { text } = await open('/');
    for (const { code, file, incidents } of incidentGroups) {
      const source = readFileSync(new URL(`../../example-app/src/${file}`, import.meta.url), 'utf8');
      const unindented = (text: string) => text.replaceAll(/^ +| +$/gm, '');
      expect(unindented(source)).toContain(unindented(code));
      expect(code.split('\n')).toHaveLength(3);
      for (const [name, title] of incidents)
        expect(text).toMatch(new RegExp(`/incidents/${name}"><button[^>]*>${title}<`));
    }
  });

  it('say what came of them, once', async () => {
    const page = await press('refuse');
    expect(page.url).toBe(`${application.url}/#panel`);
    expect(page.text).toMatch(
      /data-tone="good">The service rejected the token: 1 refresh, the call succeeded after \d+ ms, still logged in\.</,
    );
    expect((await open('/')).text).not.toContain('class="notice"');
  });

  it('serve twelve calls that all meet the refused token by one refresh', async () => {
    const { text } = await press('burst');
    expect(text).toContain('12 calls arrived with a rejected token: 1 refresh, 12 × 200, still logged in.');
    expect(text).toContain('12 waited, 1 refresh, 12 × 200, 0 lost logins');
    expect(text).toMatch(/Make 12 calls at once <span role="img" aria-label="done">/);
    expect(text).not.toMatch(/class="failed"/);
    expect(text).toContain('<title>12 calls arrived with a rejected token: 1 refresh');
    expect(text.match(/<title>Call \d+: 401<\/title>/g)).toHaveLength(12);
    expect(text.match(/<title>Call \d+: 200<\/title>/g)).toHaveLength(12);
    const calls = application.service.requests.filter(({ headers }) => headers['x-call'] !== undefined);
    expect(calls).toHaveLength(24);
    expect(application.tokenRequests()).toBe(2);
  });

  it('let a call wait for a slow token endpoint', async () => {
    expect((await press('slow')).text).toContain('The token endpoint was slow: 1 refresh, the call succeeded');
  });

  it('let a call go on with the tokens that another process has got', async () => {
    const { text } = await press('other-process');
    expect(text).toContain('Another process refreshed first: its tokens are used, no refresh, the call succeeded');
    expect(text).toContain('Used a token from another process');
    expect(application.tokenRequests()).toBe(2);
  });

  it('keep a pair that could not be saved in memory, and save it later', async () => {
    const { text } = await press('unsaved');
    expect(text).toContain('1 refresh, its tokens are kept in memory, the call succeeded');
    expect(text).toContain('Token refreshed, not saved yet');
    await press('mend');
    await expect.poll(async () => (await open('/')).text).toContain('Token saved');
    expect(application.tokenRequests()).toBe(2);
  });

  it('keep the login through an outage, which is drawn, and finish the first minute', async () => {
    const { text } = await press('outage');
    expect(text).toContain(
      'data-tone="kept">The service is down: the refresh failed, the call failed with 503 (try again in 2 s), still logged in.',
    );
    expect(text).toContain('<title>Outage</title>');
    expect(text).toContain('No usable token');
    expect(text).not.toContain('left of');
    expect(await statuses()).toBe(503);
    await mend();
    expect(await statuses()).toBe(200);
    const after = (await open('/')).text;
    expect(after).toContain('Hello, Ada Ferrant');
    expect(after).toMatch(/Break the service <span role="img" aria-label="done">/);
  });

  it('keep the login while the token store is down', async () => {
    expect((await press('store-down')).text).toMatch(
      /data-tone="kept">The token store is down: .*the call failed with 503, still logged in\./,
    );
    await mend();
    expect(await statuses()).toBe(200);
  });

  it('keep the login while the client secret is refused', async () => {
    const { text } = await press('bad-secret');
    expect(text).toContain(
      'data-tone="kept">The service rejects the client secret: the refresh failed, the call failed with 502, still logged in.',
    );
    expect(text).toContain('You stay logged in: the service rejects the client secret.');
    await mend();
    expect(await statuses()).toBe(200);
  });

  it('show what has happened to a permission that was revoked', async () => {
    const { text } = await press('revoke');
    expect(text).toMatch(
      /data-tone="ended">The service ended your access: .*the call failed with 401, log in to continue\./,
    );
    expect(text).toContain('Your access has expired. Log in to continue.');
    expect(text).toContain('Access ended');
    await application.logIn(browser);
    expect((await open('/')).text).toContain('Hello, Ada Ferrant');
  });

  it('end in a new login, not in a loop, where the answer to a refresh is lost', async () => {
    expect((await press('lost-answer')).text).toContain(
      'data-tone="kept">The response to the refresh was lost: the refresh failed, the call failed with 503',
    );
    advance(60_000);
    expect((await open('/projects')).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
    expect((await open('/')).text).toContain('Your access has expired');
    expect((await application.logIn(browser, '1', '/projects')).text).toContain('Pocket Garden');
    expect((await open('/projects')).status).toBe(200);
  });

  it('bring nothing back after a logout during a refresh, and still show what happened', async () => {
    const { text } = await press('log-out');
    expect(text).toContain('href="/login"');
    expect(text).toMatch(
      /data-tone="good">You logged out during a refresh: .*the call failed with 401, you stay logged out\./,
    );
    expect(text).toContain('None: you are logged out');
    expect((await open('/projects')).headers.get('location')).toBe('/login?returnTo=%2Fprojects');
  });

  it('are for visitors who are logged in', async () => {
    const stranger = new FollowingBrowser();
    const page = await application.incident(stranger, 'revoke');
    expect(page.url).toBe(`${application.url}/`);
    expect(await statuses()).toBe(200);
  });
});
