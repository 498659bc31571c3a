import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Emulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CookieJar, cookieFetch } from '../../../src/emulator/log-in.js';
import { endService } from '../../support/service-process.js';
import { type Packed, pack } from '../packed.js';
import type { RunningApplication } from '../stranger.js';
import { absence, formerRefreshToken, type Moved, moveApplication, refreshesOf, startService } from './application.js';

const missing = absence('hackathon-starter');

// Accounts of its own, which sign in with a password or a service and link others: tokens in the user document of MongoDB.
describe.skipIf(missing)(`hackathon-starter${missing ? ` is skipped: ${missing}` : ''}`, () => {
  let packed: Packed;
  let mongodb: ChildProcess;
  let mongodbUri: string;
  let moved: Moved;
  let discord: Emulator;
  let twitch: Emulator;
  let application: RunningApplication;
  let origin: string;

  beforeAll(async () => {
    const started = spawn(process.execPath, [join(import.meta.dirname, 'mongodb.mjs')]);
    mongodb = started;
    [mongodbUri] = await once(createInterface({ input: started.stdout }), 'line');
    packed = await pack();
    moved = await moveApplication(packed, { name: 'hackathon-starter', start: 'app.js' });
    origin = `http://localhost:${moved.port}`;
    const wire = {
      tokenRequest: 'form',
      accessToken: 'opaque',
      scopeRequired: false,
      authorizationPath: '/oauth2/authorize',
    } as const;
    discord = await startService(
      {
        profile: { ...wire, apiPath: '/api/v10' },
        routes: [
          {
            method: 'GET',
            path: '/users/@me',
            handler: ({ user: { id, name } }) => ({ id, username: name, email: `user${id}@example.org` }),
          },
        ],
      },
      `${origin}/auth/discord/callback`,
    );
    const streams = { data: [{ user_login: 'streamer', tags: [], type: '', thumbnail_url: '' }] };
    twitch = await startService(
      {
        profile: { ...wire, apiPath: '/helix' },
        routes: [
          {
            method: 'GET',
            path: '/users',
            handler: ({ user: { id, name } }) => ({
              data: [{ id, login: name, display_name: name, profile_image_url: '' }],
            }),
          },
          { method: 'GET', path: '/channels/followers', handler: () => ({ total: 1 }) },
          { method: 'GET', path: '/streams', handler: () => streams },
        ],
      },
      `${origin}/auth/twitch/callback`,
    );
    application = await moved.start(variables());
  });
  afterAll(async () => {
    await application?.stop();
    await Promise.all([discord?.close(), twitch?.close(), moved?.remove(), packed?.remove()]);
    if (mongodb) await endService(mongodb, 'SIGTERM');
  });

  const variables = () => ({
    BASE_URL: origin,
    MONGODB_URI: mongodbUri,
    SESSION_SECRET: 'tests',
    RATE_LIMIT_GLOBAL: '100000',
    DISCORD_CLIENT_ID: discord.options.clientID,
    DISCORD_CLIENT_SECRET: discord.options.clientSecret,
    DISCORD_OPTIONS: JSON.stringify(discord.options),
    TWITCH_CLIENT_ID: twitch.options.clientID,
    TWITCH_CLIENT_SECRET: twitch.options.clientSecret,
    TWITCH_OPTIONS: JSON.stringify(twitch.options),
  });
  const restart = async () => {
    await application.stop();
    application = await moved.start(variables());
  };
  const signIn = async (user: string) => (await discord.logIn(fetch, { login: `${origin}/auth/discord`, user })).fetch;
  const linkTwitch = (browse: typeof fetch, user: string) =>
    twitch.logIn(browse, { login: `${origin}/auth/twitch`, user });
  /** Who the page of the Twitch API shows, or where it leads. */
  const shown = async (browse: typeof fetch) => {
    const response = await browse(`${origin}/api/twitch`, { redirect: 'manual', headers: { accept: 'text/html' } });
    return response.headers.get('location') ?? /Name: (User \d)/.exec(await response.text())?.[1] ?? response.status;
  };
  const emailOf = async (browse: typeof fetch) =>
    /value="(\w+@example\.org)"/.exec(await (await browse(`${origin}/account`)).text())?.[1];
  const linked = async (user: string) => {
    const browse = await signIn(user);
    await linkTwitch(browse, user);
    return browse;
  };
  /** Runs a script with the application's own model of users. */
  const withUsers = async (script: string) => {
    const connected = `require('mongoose').connect('${mongodbUri}').then(async () => { ${script}; process.exit(); });`;
    const args = ['-e', `const User = require('./models/User'); ${connected}`];
    return (await promisify(execFile)(process.execPath, args, { cwd: moved.folder })).stdout;
  };

  test('signs two people in with one service, links another, and keeps their accounts apart', async () => {
    const [one, two] = [await linked('1'), await linked('2')];
    expect([await emailOf(one), await emailOf(two)]).toEqual(['user1@example.org', 'user2@example.org']);
    expect(await Promise.all([one, two, one, two].map(shown))).toEqual(['User 1', 'User 2', 'User 1', 'User 2']);
  });

  test('refuses to link an account of a service that is linked to somebody else', async () => {
    const [, two] = [await linked('1'), await linked('2')];
    await linkTwitch(two, '1');
    expect(await emailOf(two)).toBe('user2@example.org');
    expect(await shown(two)).toBe('User 2');
  });

  test('refreshes once for 20 requests whose token is refused, and logs nobody out', async () => {
    const browse = await linked('1');
    twitch.expireAccessTokens();
    twitch.requests.length = 0;
    const pages = await Promise.all(Array.from({ length: 20 }, () => shown(browse)));
    expect(pages).toEqual(pages.map(() => 'User 1'));
    expect(refreshesOf(twitch)).toBe(1);
  });

  test('keeps logins and links over a restart and over a logout', async () => {
    const browse = await linked('1');
    await restart();
    expect(await shown(browse)).toBe('User 1');
    await browse(`${origin}/logout`);
    expect(await shown(browse)).toBe('/login');
    expect(await shown(await signIn('1'))).toBe('User 1');
  });

  test('ends the grant of a service that is unlinked', async () => {
    const browse = await linked('3');
    expect(await shown(browse)).toBe('User 3');
    await browse(`${origin}/account/unlink/twitch`);
    expect(await shown(browse)).toBe('/auth/twitch?returnTo=%2Fapi%2Ftwitch');
    expect(await emailOf(browse)).toBe('user3@example.org');
  });

  test('takes over the refresh token of the user document at the first request, once for six at a time', async () => {
    const browse = await signIn('3');
    const refreshToken = await formerRefreshToken(twitch, `${origin}/auth/twitch/callback`, '3');
    const former = JSON.stringify({ kind: 'twitch', accessToken: 'old', refreshToken });
    await withUsers(`await User.updateOne({ discord: '3' }, { $set: { twitch: '3' }, $push: { tokens: ${former} } })`);
    twitch.requests.length = 0;
    expect(await Promise.all(Array.from({ length: 6 }, () => shown(browse)))).toEqual(Array(6).fill('User 3'));
    expect(refreshesOf(twitch)).toBe(1);
    const left = await withUsers(`console.log(JSON.stringify((await User.findOne({ discord: '3' })).tokens))`);
    expect(left).toContain('"kind":"twitch"');
    expect(left).not.toContain(refreshToken);
  });

  test('links two services to an account with a password', async () => {
    const browse = cookieFetch(fetch, new CookieJar());
    const response = await browse(`${origin}/signup`);
    const csrf = /name="_csrf" value="([^"]+)"/.exec(await response.text())?.[1] ?? '';
    const account = { email: 'own@example.org', password: 'a password', confirmPassword: 'a password', _csrf: csrf };
    await browse(`${origin}/signup`, { method: 'POST', body: new URLSearchParams(account) });
    await discord.logIn(browse, { login: `${origin}/auth/discord`, user: '4' });
    await linkTwitch(browse, '4');
    expect(await emailOf(browse)).toBe('own@example.org');
    expect(await shown(browse)).toBe('User 4');
  });
});
