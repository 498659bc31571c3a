import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Emulator } from 'passport-oauth-app/emulator';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres, type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { type Packed, pack } from '../packed.js';
import type { RunningApplication } from '../stranger.js';
import { absence, formerRefreshToken, type Moved, moveApplication, refreshesOf, startService } from './application.js';

const missing = absence('playlister') ?? (hasPostgres() ? undefined : 'PostgreSQL is not installed');

/** The application's database is at port 5432. */
const DATABASE_HOST = '127.0.0.154';

const TABLES = `
  CREATE TABLE "user" (
    id serial PRIMARY KEY, spotify_user_id varchar(255) NOT NULL UNIQUE, theme text, tos_signed text, pp_signed text,
    spotify_refresh_token varchar(255), spotify_token_expires_at timestamptz, created_at timestamptz, updated_at timestamptz
  );
  CREATE TABLE session (sid varchar PRIMARY KEY, sess json NOT NULL, expire timestamp(6) NOT NULL);
`;

// Spotify playlists: refresh tokens in the user table of PostgreSQL, access tokens in the user of the session.
describe.skipIf(missing)(`playlister${missing ? ` is skipped: ${missing}` : ''}`, () => {
  let packed: Packed;
  let postgres: PostgresServer;
  let gate: Server;
  let database: pg.Pool;
  let moved: Moved;
  let service: Emulator;
  let application: RunningApplication;
  let origin: string;

  beforeAll(async () => {
    postgres = await startPostgres();
    gate = createServer((socket) => {
      const server = connect(postgres.port, '127.0.0.1');
      socket.pipe(server).pipe(socket);
      for (const end of [socket, server]) end.on('error', () => [socket, server].map((one) => one.destroy()));
    }).listen(5432, DATABASE_HOST);
    database = new pg.Pool({ connectionString: postgres.connectionString });
    await database.query(TABLES);
    packed = await pack();
    moved = await moveApplication(packed, { name: 'playlister', start: 'src/start.js' });
    origin = `http://localhost:${moved.port}`;
    service = await startService(
      {
        profile: {
          accessTokenLifetime: 3600,
          ...{ authorizationPath: '/authorize', tokenPath: '/api/token', apiPath: '/v1', scopeRequired: false },
          ...{ tokenRequest: 'form', clientAuthentication: 'basic', accessToken: 'opaque' },
        },
        routes: [
          { method: 'GET', path: '/me', handler: ({ user: { id, name } }) => ({ id, display_name: name }) },
          {
            method: 'GET',
            path: '/me/playlists',
            handler: ({ user, query }) => ({
              items: [{ id: user.name }],
              next: query.offset === '100' ? null : 'more',
            }),
          },
        ],
      },
      `${origin}/auth/spotify/callback`,
    );
    application = await moved.start(variables());
  });
  afterAll(async () => {
    await application?.stop();
    gate?.close();
    await Promise.all([service?.close(), moved?.remove(), packed?.remove(), database?.end()]);
    await postgres?.stop();
  });

  const variables = () => ({
    SPOTIFY_KEY: service.options.clientID,
    SPOTIFY_SECRET: service.options.clientSecret,
    SPOTIFY_CALLBACK_URL: `${origin}/auth/spotify/callback`,
    OAUTH_OPTIONS: JSON.stringify(service.options),
    SESSION_SECRET: 'tests',
    SESSION_MAXAGE: '36000000',
    DB_USER: 'postgres',
    DB_PASSWORD: 'none',
    DB_HOST: DATABASE_HOST,
    DB_NAME: 'postgres',
    // Its Spotify client knows one host alone.
    NODE_OPTIONS: `--require=${join(import.meta.dirname, 'surroundings.cjs')}`,
    SERVICE_HOST: 'api.spotify.com',
    SERVICE_URL: service.options.baseUrl,
  });
  const restart = async (further = {}) => {
    await application.stop();
    application = await moved.start({ ...variables(), ...further });
  };
  const logIn = async (user: string) => {
    const { fetch: browse, response } = await service.logIn(fetch, { login: `${origin}/auth/spotify`, user });
    expect([response.status, response.url]).toEqual([200, `${origin}/`]);
    return browse;
  };
  const me = async (browse: typeof fetch) => {
    const response = await browse(`${origin}/me/spotify`);
    return [response.status, ((await response.json()) as { readonly display_name?: string }).display_name];
  };

  test('gives each of two users their own three pages, when both ask at the same time', async () => {
    const [one, two] = [await logIn('1'), await logIn('2')];
    const asked = Array.from({ length: 20 }, (_, index) => (index % 2 ? two : one));
    const answers = await Promise.all(
      asked.map(async (browse) => {
        const response = await browse(`${origin}/playlists/spotify/all`);
        const { items } = (await response.json()) as { readonly items: readonly { readonly id: string }[] };
        return items.map(({ id }) => id);
      }),
    );
    expect(answers).toEqual(asked.map((browse) => Array(3).fill(browse === one ? 'User 1' : 'User 2')));
    const { rows } = await database.query('SELECT spotify_user_id, spotify_refresh_token FROM "user" ORDER BY 1');
    expect(rows).toEqual(['1', '2'].map((id) => ({ spotify_user_id: id, spotify_refresh_token: null })));
  });

  test('refreshes once for 20 requests with an expired token, after a restart, and logs nobody out', async () => {
    const browse = await logIn('1');
    await restart({ CLOCK_AHEAD: '4000' });
    service.advance(4000);
    service.requests.length = 0;
    const answers = await Promise.all(Array.from({ length: 20 }, () => me(browse)));
    expect(answers).toEqual(answers.map(() => [200, 'User 1']));
    expect(refreshesOf(service)).toBe(1);
    expect(await me(browse)).toEqual([200, 'User 1']);
  });

  test('takes over the refresh token of the user table at the first request, once for six at a time', async () => {
    const browse = await logIn('3');
    // As the former code has left it: a session, a row with a refresh token, and no grant.
    await database.query('DELETE FROM passport_oauth_app_grants');
    const refreshToken = await formerRefreshToken(service, `${origin}/auth/spotify/callback`, '3');
    await database.query(`UPDATE "user" SET spotify_refresh_token = $1 WHERE spotify_user_id = '3'`, [refreshToken]);
    await restart();
    service.requests.length = 0;
    const answers = await Promise.all(Array.from({ length: 6 }, () => me(browse)));
    expect(answers).toEqual(answers.map(() => [200, 'User 3']));
    expect(refreshesOf(service)).toBe(1);
  });

  test('ends the grant at a logout', async () => {
    const browse = await logIn('2');
    const grants = async () =>
      (await database.query(`SELECT count(*) FROM passport_oauth_app_grants WHERE id NOT LIKE '%login:%'`)).rows[0]
        .count;
    const before = Number(await grants());
    await browse(`${origin}/logout`);
    expect(Number(await grants())).toBe(before - 1);
    expect((await browse(`${origin}/me`)).status).toBe(404);
  });
});
