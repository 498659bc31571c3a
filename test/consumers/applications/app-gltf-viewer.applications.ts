import type { Emulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Packed, pack } from '../packed.js';
import type { RunningApplication } from '../stranger.js';
import { absence, type Moved, moveApplication, refreshesOf, startService } from './application.js';

const missing = absence('app-gltf-viewer');

// Onshape's sample application: tokens in the user that Passport serialises into the session, which is in memory.
describe.skipIf(missing)(`app-gltf-viewer${missing ? ` is skipped: ${missing}` : ''}`, () => {
  let packed: Packed;
  let moved: Moved;
  let service: Emulator;
  let application: RunningApplication;
  let origin: string;

  beforeAll(async () => {
    packed = await pack();
    moved = await moveApplication(packed, {
      name: 'app-gltf-viewer',
      start: 'bin/www',
      packages: ['passport', 'express-session'],
    });
    // It runs behind a proxy that ends TLS, in a frame of Onshape's pages.
    origin = `https://localhost:${moved.port}`;
    service = await startService(
      {
        profile: { tokenRequest: 'form', accessToken: 'opaque', scopeRequired: false, apiPath: '/api' },
        routes: [
          { method: 'GET', path: '/users/sessioninfo', handler: ({ user: { id, name } }) => ({ id, name }) },
          {
            method: 'GET',
            path: '/documents/d/:id/w/1/elements',
            handler: ({ user, params }) => [user.name, params.id],
          },
        ],
      },
      `${origin}/oauthRedirect`,
    );
    application = await moved.start(variables());
  });
  afterAll(async () => {
    await application?.stop();
    await Promise.all([service?.close(), moved?.remove(), packed?.remove()]);
  });

  const variables = () => ({
    API_URL: `${service.options.baseUrl}/api`,
    OAUTH_URL: service.options.authUrl,
    OAUTH_CLIENT_ID: service.options.clientID,
    OAUTH_CLIENT_SECRET: service.options.clientSecret,
    OAUTH_CALLBACK_URL: `${origin}/oauthRedirect`,
    SESSION_SECRET: 'tests',
    WEBHOOK_CALLBACK_ROOT_URL: origin,
  });
  const proxied: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    const forwarded = new Request(request.url.replace('https:', 'http:'), request);
    forwarded.headers.set('x-forwarded-proto', 'https');
    const framed = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' };
    for (const [name, value] of Object.entries(framed)) forwarded.headers.set(name, value);
    return fetch(forwarded, { redirect: 'manual' });
  };
  const logIn = async (user: string) => {
    const login = `${origin}/?documentId=d${user}&workspaceId=1&elementId=e`;
    const { fetch: browse, response } = await service.logIn(proxied, { login, user });
    expect([response.status, response.url.replace(/^http:/, 'https:')]).toEqual([200, login]);
    return browse;
  };
  const elements = async (browse: typeof fetch) => {
    const response = await browse(`${origin}/api/elements?documentId=d&workspaceId=1`);
    return [response.status, await response.json()];
  };

  test('logs two users in, each to their own data, and leads back to the page', async () => {
    const [one, two] = [await logIn('1'), await logIn('2')];
    expect(await elements(one)).toEqual([200, ['User 1', 'd']]);
    expect(await elements(two)).toEqual([200, ['User 2', 'd']]);
  });

  test('refreshes once for 20 pages and 20 calls whose token is refused, and logs nobody out', async () => {
    const browse = await logIn('1');
    service.expireAccessTokens();
    service.requests.length = 0;
    const pages = Promise.all(Array.from({ length: 20 }, () => browse(`${origin}/`, { redirect: 'manual' })));
    const answers = await Promise.all(Array.from({ length: 20 }, () => elements(browse)));
    expect(answers).toEqual(answers.map(() => [200, ['User 1', 'd']]));
    expect((await pages).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(refreshesOf(service)).toBe(1);
    expect(await elements(browse)).toEqual([200, ['User 1', 'd']]);
  });

  test('leads to the login once the service has ended the grant', async () => {
    const browse = await logIn('3');
    service.revoke('3');
    await elements(browse);
    const page = await browse(`${origin}/?documentId=d`, { redirect: 'manual', headers: { accept: 'text/html' } });
    expect([page.status, page.headers.get('location')]).toEqual([302, '/oauthSignin?documentId=d']);
  });

  test('asks for a login after a restart, as before: its sessions are in memory', async () => {
    const browse = await logIn('2');
    await application.stop();
    application = await moved.start(variables());
    expect((await browse(`${origin}/`, { redirect: 'manual' })).status).toBe(302);
    expect(await elements(await logIn('2'))).toEqual([200, ['User 2', 'd']]);
  });
});
