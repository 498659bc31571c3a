import type { ErrorRequestHandler } from 'express';
import * as passportOAuthApp from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { snippetsOf } from '../consumers/snippets.js';
import { browser, clock, loggedIn, logIn, open, visit, world } from '../support/one-world.js';
import { type Handler, sendJson, type WorldOptions } from '../support/world.js';

/** The very handler of docs/errors.md, without its types. */
function documentedHandler(): ErrorRequestHandler {
  const snippet = snippetsOf('docs/errors.md').find(({ file }) => file === 'error-handler.ts');
  const code = (snippet?.text ?? '')
    .replaceAll(/^import type .*$/gm, '')
    .replace(/^import (\{.*\}) from 'passport-oauth-app';$/m, 'const $1 = passportOAuthApp;')
    .replaceAll(/: (?:unknown|Request|Response|NextFunction|void)\b/g, '')
    .replace('export function', 'return function');
  return new Function('passportOAuthApp', code)(passportOAuthApp) as ErrorRequestHandler;
}

const SCRIPT = '<img src=x onerror=alert(1)><script>alert(1)</script>';
const html = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
const script = { headers: { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } };

const withHandler: WorldOptions = {
  routes: (app) => {
    const call: Handler = (req, res, next) => req.apiClient.get('/anything').then((data) => sendJson(res, data), next);
    app.get('/call', call);
    app.get('/late', (req, res, next) => {
      res.write('half a page');
      return call(req, res, next);
    });
    app.use(documentedHandler());
  },
};

describe('the error handler of docs/errors.md', () => {
  test("shows the API's words as plain text to a page, and as JSON to a script", async () => {
    await open(withHandler);
    await logIn();
    world.service.fail('api', { status: 400, body: { error: { message: SCRIPT, code: 400 } }, times: 2 });
    const page = await visit('/call', html);
    expect([page.status, page.headers.get('content-type')]).toEqual([400, expect.stringMatching(/^text\/plain/)]);
    const answer = await visit('/call', script);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      400,
      expect.stringMatching(/^application\/json/),
    ]);
    expect(answer.json().error).toMatchObject({ code: 'ERR_API' });
  });

  test('sends a page that needs a login there, and back to the page', async () => {
    await open(withHandler);
    const page = await visit('/call?x=1&y=2', html);
    expect([page.status, page.headers.get('location')]).toEqual([302, '/login?returnTo=%2Fcall%3Fx%3D1%26y%3D2']);
    const callback = await world.begin(browser, {}, String(page.headers.get('location')));
    expect((await visit(callback)).headers.get('location')).toBe('/call?x=1&y=2');
  });

  test('answers a script that needs a login with 401, and no redirect', async () => {
    await open(withHandler);
    const answer = await visit('/call', script);
    expect([answer.status, answer.json().error.code]).toEqual([401, 'ERR_NOT_AUTHORIZED']);
    expect(answer.headers.get('location')).toBeNull();
  });

  test('tells when to come back, and nothing of what is broken, during an outage', async () => {
    await loggedIn(withHandler);
    clock.advance(7_200);
    world.service.fail('token', { status: 503, body: SCRIPT });
    const page = await visit('/call', html);
    expect([page.status, page.text]).toEqual([503, 'Something went wrong. Please try again.']);
    expect(page.headers.get('retry-after')).toMatch(/^\d+/);
  });

  test('leaves a response that has begun to Express', async () => {
    await open(withHandler);
    // A body that ends early is a whole one to fetch() where the connection was to end with it.
    const kept = { headers: { ...html.headers, connection: 'keep-alive' } };
    await expect(visit('/late', kept)).rejects.toThrow();
    expect((await visit('/whoami')).status).toBe(200);
  });
});
