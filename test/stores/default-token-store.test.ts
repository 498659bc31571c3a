import connectPgSimple from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { type EmulatorUser, startEmulator } from 'passport-oauth-app/emulator';
import pg from 'pg';
import { createClient } from 'redis';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Browser, type Page } from '../support/browser.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { startWorld, type World } from '../support/world.js';

const HOURS = 3600;

/** Starts a server with the sessions of an application, which ends with the test. Returns how each process opens its own store over it. */
type StartSessions = () => Promise<() => session.Store>;

const startRedisSessions: StartSessions = async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const client = await createClient({ url: server.url }).connect();
  onTestFinished(() => client.destroy());
  return () => new RedisStore({ client });
};

const startPostgresSessions: StartSessions = async () => {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const pool = new pg.Pool({ connectionString: server.connectionString });
  onTestFinished(() => pool.end());
  const PgStore = connectPgSimple(session);
  return () => new PgStore({ pool, createTableIfMissing: true, pruneSessionInterval: false });
};

/** Sessions in a table with keys of at most 36 characters, and with a collation that ignores case. */
class SessionTable extends session.Store {
  readonly #rows: Map<string, string>;

  constructor(rows: Map<string, string>) {
    super();
    this.#rows = rows;
  }

  override get(sid: string, callback: (error: unknown, found?: session.SessionData | null) => void): void {
    setImmediate(callback, null, JSON.parse(this.#rows.get(sid.toLowerCase()) ?? 'null'));
  }

  override set(sid: string, data: session.SessionData, callback: (error?: unknown) => void = () => {}): void {
    if (sid.length > 36) return void setImmediate(callback, new Error('Data too long for column sid'));
    this.#rows.set(sid.toLowerCase(), JSON.stringify(data));
    setImmediate(callback);
  }

  override destroy(sid: string, callback: () => void = () => {}): void {
    this.#rows.delete(sid.toLowerCase());
    setImmediate(callback);
  }
}

/** Two processes of an application that sets no token store, and a service that revokes on reuse. */
async function startProcesses(open: () => session.Store, users?: readonly EmulatorUser[]) {
  const clock = new TestClock();
  const service = await startEmulator({ clock: clock.now, refreshTokenReuse: 'revoke', ...(users && { users }) });
  onTestFinished(() => service.close());
  const start = async (): Promise<World> => {
    const world = await startWorld({
      running: service,
      session: { store: open() },
      strategy: { clock: clock.now, ...(users && { grantId: (_req: unknown, user: { id: string }) => user.id }) },
    });
    onTestFinished(() => world.close());
    return world;
  };
  const worlds = [await start(), await start()] as const;
  const logIn = async (user?: string): Promise<Browser> => {
    const browser = new Browser();
    await worlds[0].logIn(browser, user);
    for (const [name, value] of browser.cookies(worlds[0].url)) browser.cookies(worlds[1].url).set(name, value);
    return browser;
  };
  const projects = (browser: Browser, world: World): Promise<Page> => browser.visit(`${world.url}/projects`);
  return { service, clock, worlds, logIn, projects };
}

const locking: readonly (readonly [string, boolean, StartSessions])[] = [
  ['connect-redis', hasRedis(), startRedisSessions],
  ['connect-pg-simple', hasPostgres(), startPostgresSessions],
];

describe.each(locking)('two processes with their sessions in %s, and no token store', (_name, isInstalled, start) => {
  test.skipIf(!isInstalled)(
    'refresh a grant once between them, so that a service that revokes on reuse ends no login',
    threats(43),
    async () => {
      const { service, clock, worlds, logIn, projects } = await startProcesses(await start());
      const browser = await logIn();
      service.requests.length = 0;
      for (let round = 1; round <= 3; round++) {
        clock.advance(2 * HOURS);
        service.fail('token', { delay: 100 });
        const pages = await Promise.all(worlds.map((world) => projects(browser, world)));
        expect(pages.map(({ status }) => status)).toEqual([200, 200]);
        expect(worlds[0].tokenRequests()).toHaveLength(round);
      }
    },
  );
});

describe('two processes with their sessions in a table, and no token store', () => {
  let open: () => session.Store;
  beforeEach(() => {
    const rows = new Map<string, string>();
    open = () => new SessionTable(rows);
  });

  test('give no user the grant of another whose id differs by case only', threats(65), async () => {
    const users = ['Ada', 'ada'].map((id, index) => ({ id, name: id, projects: [{ id: index, name: `of ${id}` }] }));
    const { clock, worlds, logIn, projects } = await startProcesses(open, users);
    const [upper, lower] = [await logIn('Ada'), await logIn('ada')];
    clock.advance(31);
    for (const world of worlds) {
      expect((await projects(upper, world)).text).toContain('of Ada');
      expect((await projects(lower, world)).text).toContain('of ada');
    }
  });

  test('keep grants under keys that the table has room for', async () => {
    const { clock, worlds, logIn, projects } = await startProcesses(open);
    const browser = await logIn();
    clock.advance(2 * HOURS);
    for (const world of worlds) expect((await projects(browser, world)).status).toBe(200);
    expect(worlds[0].errors).toEqual([]);
  });

  test('warn once, in the first process that sees a refresh of the other, since the table has no lock', async () => {
    const { clock, worlds, logIn, projects } = await startProcesses(open, [{ id: 'Eve', name: 'Eve' }]);
    const browser = await logIn('Eve');
    for (const world of worlds) expect((await projects(browser, world)).status).toBe(200);
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    for (let round = 0; round < 3; round++) {
      clock.advance(2 * HOURS);
      for (const world of worlds) expect((await projects(browser, world)).status).toBe(200);
    }
    expect(warn.mock.calls.map(([message]) => message)).toEqual([expect.stringContaining('has no lock')]);
  });
});
