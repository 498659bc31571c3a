import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startEmulator } from 'passport-oauth-app/emulator';
import pg from 'pg';
import { createClient } from 'redis';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { dataOf } from '../support/framed.js';
import { openStore } from '../support/open-store.mjs';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import type { SharedStore } from '../support/processes.js';
import { type RawAnswer, rawRequest } from '../support/raw-request.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';

const SCRIPT = fileURLToPath(new URL('../support/login-worker.mjs', import.meta.url));
const CALLBACK = 'http://127.0.0.1/callback';
const SERVICES = ['one', 'two', 'three'];
const MARK = /login:oauth-app\.[\w-]{11}\+[\w-]{43}$/;

/** A server that the processes of all tests share, and seconds until its marks of used logins end by themselves. */
interface SharedServer {
  readonly address: object;
  clear(): Promise<unknown>;
  marks(): Promise<number[]>;
  stop(): Promise<void>;
}

async function startSharedRedis(): Promise<SharedServer> {
  const redis = await startRedis();
  const client = await createClient({ url: redis.url }).connect();
  return {
    address: { redis: redis.url },
    marks: async () => {
      const keys = (await client.keys('*')).filter((key) => MARK.test(key));
      return Promise.all(keys.map((key) => client.ttl(key)));
    },
    clear: () => client.flushAll(),
    stop: async () => {
      client.destroy();
      await redis.stop();
    },
  };
}

async function startSharedPostgres(): Promise<SharedServer> {
  const postgres = await startPostgres();
  const pool = new pg.Pool({ connectionString: postgres.connectionString });
  // Two processes that create it at once are refused by PostgreSQL.
  const table = readFileSync('node_modules/connect-pg-simple/table.sql', 'utf8');
  return {
    address: { postgres: postgres.connectionString },
    marks: async () => {
      // Two days before the session store deletes them.
      const ttl = "extract(epoch FROM expire - interval '2 days' - now())";
      const { rows } = await pool.query(`SELECT sid, ${ttl} AS ttl FROM session`);
      return rows.filter(({ sid }) => MARK.test(sid)).map(({ ttl }) => Number(ttl));
    },
    clear: () => pool.query(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${table}`),
    stop: async () => {
      await pool.end();
      await postgres.stop();
    },
  };
}

const started = new Map<() => Promise<SharedServer>, Promise<SharedServer>>();
afterAll(async () => {
  for (const server of started.values()) await (await server).stop();
});

/** Starts a service, and one process of an application for each object of options. The server is empty. */
async function startProcesses(
  start: () => Promise<SharedServer>,
  grants: string,
  processes: readonly object[],
  others: object = {},
) {
  const server = started.get(start) ?? start();
  started.set(start, server);
  const [service, shared] = [await startEmulator({ refreshTokenReuse: 'revoke' }), await server];
  await shared.clear();
  const redirectUrls = [CALLBACK, ...SERVICES.map((name) => `http://127.0.0.1/${name}/callback`)];
  service.register({ clientID: service.options.clientID, redirectUrls });
  const children: ChildProcess[] = [];
  const origins = await Promise.all(
    processes.map(async (options) => {
      const config = { server: shared.address, grants, options: { ...service.options, ...options }, ...others };
      const child = fork(SCRIPT, [JSON.stringify(config)]);
      children.push(child);
      const [{ port }] = (await once(child, 'message')) as [{ port: number }];
      return `http://127.0.0.1:${port}`;
    }),
  );
  onTestFinished(async () => {
    for (const child of children) child.kill('SIGKILL');
    await service.close();
  });
  const close = () => Promise.all(children.map((child) => [child.send('close'), once(child, 'exit')][1]));
  return { service, shared, origins, close };
}

/** The name and value of each cookie that an answer sets. */
const cookiesOf = (answer: RawAnswer) =>
  (answer.headers['set-cookie'] ?? []).map((line) => String(line.split(';', 1)[0]));

const servers = [
  ['Redis', hasRedis(), startSharedRedis, 'store'],
  ['connect-redis, with no token store', hasRedis(), startSharedRedis, 'sessions'],
  ['connect-pg-simple, with no token store', hasPostgres(), startSharedPostgres, 'sessions'],
] as const;

for (const [name, isInstalled, start, grants] of servers)
  describe.skipIf(!isInstalled)(`two processes over ${name}`, () => {
    test('hand a login over to a frame once, whichever of them answers each request', threats(93), async () => {
      const { service, shared, origins } = await startProcesses(start, grants, [{}, {}]);
      const [one = '', other = ''] = origins;
      const inFrame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-site' };
      const button = dataOf(await rawRequest(one, '/page', { headers: inFrame }));
      const begun = await rawRequest(other, button.url);
      const cookie = cookiesOf(begun).join('; ');
      const { search } = new URL(await service.approve(String(begun.headers.location)));
      const { code } = dataOf(await rawRequest(one, `/callback${search}`, { headers: { cookie } }));
      const take = {
        method: 'POST',
        headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
        body: JSON.stringify({ code, verifier: button.verifier }),
      };
      const answers = await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const origin = origins[index % 2] ?? one;
          return { origin, ...(await rawRequest(origin, '/login/frame', take)) };
        }),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array.from({ length: 7 }, () => 403)]);
      const [taken] = answers.filter(({ status }) => status === 204);
      const session = taken ? cookiesOf(taken).join('; ') : '';
      // The sessions of the one case are in the memory of each process.
      const reader = grants === 'sessions' ? (taken?.origin === one ? other : one) : (taken?.origin ?? one);
      const page = await rawRequest(reader, '/page', { headers: { ...inFrame, cookie: session } });
      expect([page.status, page.text]).toEqual([200, 'the page']);
      expect(await shared.marks()).toHaveLength(1);
    });

    test('make one token request for a callback that comes to each of them at once', threats(5, 59, 70), async () => {
      const { service, shared, origins, close } = await startProcesses(start, grants, [{}, {}]);
      const [first = ''] = origins;
      for (let round = 0; round < 3; round++) {
        service.requests.length = 0;
        const begun = await rawRequest(first, '/login');
        const cookie = cookiesOf(begun).join('; ');
        const { search } = new URL(await service.approve(String(begun.headers.location)));
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            rawRequest(origins[index % origins.length] ?? first, `/callback${search}`, { headers: { cookie } }),
          ),
        );
        expect(answers.map(({ status }) => status).sort()).toEqual([302, ...Array.from({ length: 19 }, () => 403)]);
        expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(1);
      }
      await close();
      const left = await shared.marks();
      expect(left).toHaveLength(3);
      // The processes have ended, and with them whoever would delete the marks.
      for (const seconds of left) expect(seconds).toBeLessThan(15 * 60);
    });
  });

const sessions = [
  ['Redis', hasRedis(), startSharedRedis],
  ['PostgreSQL', hasPostgres(), startSharedPostgres],
] as const;

for (const [name, isInstalled, start] of sessions)
  describe.skipIf(!isInstalled)(`two processes with sessions in ${name}`, () => {
    const withKey = (key: string) => ({ encryptionKeys: key.repeat(32) });

    test.for([
      ['encryptionKeys of their own', 'sessions', withKey('a'), withKey('b')],
      ['a token store in the memory of each', 'memory', {}, {}],
    ] as const)(
      'and %s end a login that leads nowhere in an error that names the cause',
      threats(72),
      async ([, grants, one, other]) => {
        const { service, origins } = await startProcesses(start, grants, [one, other]);
        const [first = '', second = ''] = origins;
        const jar = new Map<string, string>();
        const visit = async (origin: string, path: string) => {
          const cookie = [...jar].map((pair) => pair.join('=')).join('; ');
          const answer = await rawRequest(origin, path, { headers: { cookie } });
          for (const pair of cookiesOf(answer))
            jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
          return answer;
        };
        let rounds = 0;
        let location = '/login?returnTo=/page';
        let finished: RawAnswer;
        do {
          rounds += 1;
          const begun = await visit(first, location);
          const { search } = new URL(await service.approve(String(begun.headers.location)));
          finished = await visit(first, `/callback${search}`);
          // The page is at a process that does not find the grant.
          location = String((await visit(second, '/page')).headers.location);
        } while (finished.status === 302 && rounds < 10);
        expect([finished.status, JSON.parse(finished.text).code]).toEqual([500, 'ERR_LOGIN_LOOP']);
        expect(finished.text).toMatch(/its grant was not found.*different encryptionKeys, or separate token stores/);
        expect(rounds).toBeLessThanOrEqual(4);
      },
    );
  });

for (const [name, isInstalled, start] of sessions)
  describe.skipIf(!isInstalled)(`connections at two processes with sessions and grants in ${name}`, () => {
    const startConnections = async (others: object = {}) => {
      const config = { connections: SERVICES, ...others };
      const { service, shared, origins } = await startProcesses(start, 'store', [{}, {}], config);
      const [first = '', second = ''] = origins;
      const cookies = cookiesOf(await rawRequest(first, '/local-login'));
      const visit = (origin: string, path: string) =>
        rawRequest(origin, path, { headers: { cookie: cookies.join('; ') } });
      const begin = async (name: string) => {
        const begun = await visit(first, `/${name}`);
        cookies.push(...cookiesOf(begun));
        const { pathname, search } = new URL(await service.approve(String(begun.headers.location)));
        return pathname + search;
      };
      const session = async () => JSON.parse((await visit(second, '/session')).text);
      return { service, shared, first, second, visit, begin, session };
    };

    test('lose none of three that end at once', threats(75), async () => {
      const { first, second, visit, begin, session } = await startConnections();
      const callbacks = [await begin('one'), await begin('two'), await begin('three')];
      const answers = await Promise.all(callbacks.map((path, index) => visit(index === 1 ? second : first, path)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(Object.keys(await session())).toEqual(expect.arrayContaining(SERVICES));
    });

    test(
      'undo no logout at the other one while the grant is being saved, and leave no grant',
      threats(75),
      async () => {
        const { service, shared, first, second, visit, begin, session } = await startConnections({ idIsOfUser: true });
        const ending = visit(first, await begin('one'));
        await until(async () => expect((await visit(first, '/held')).text).toBe('1'));
        await visit(second, '/leave');
        await visit(first, '/release');
        expect((await ending).status).toBe(403);
        expect((await session()).passport).toBeUndefined();
        const { tokenStore, close } = await openStore(shared.address as SharedStore);
        await until(async () => expect(await tokenStore.get(storeId(service.options, 'ada', 'one'))).toBeUndefined());
        await close();
      },
    );
  });
