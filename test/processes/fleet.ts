import type { TokenStore } from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, beforeAll, describe, onTestFinished, type TestOptions } from 'vitest';
import { Browser } from '../support/browser.js';
import { openStore } from '../support/open-store.mjs';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { type SharedStore, Worker } from '../support/processes.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { standIn } from '../support/stand-in.js';
import { byUser, startWorld } from '../support/world.js';

/** A store that several processes share, with its server. */
export interface StoreServer {
  /** What the processes are told. */
  readonly shared: (lease: number) => SharedStore;
  /** The same store as seen from the test. */
  readonly tokenStore: TokenStore;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const [currentStore, setStore] = standIn<StoreServer>('store');

/** That of the tests of {@link overEachStore}. */
export const store: StoreServer = currentStore;

/** Groups tests over a store that processes can share, once for each that is installed here. */
export function overEachStore(title: string, options: TestOptions, tests: (name: string) => void): void {
  const overStore = (name: string, isInstalled: boolean, start: () => Promise<StoreServer>) =>
    describe.skipIf(!isInstalled)(title.replace('%s', name), options, () => {
      beforeAll(async () => {
        setStore(await start());
      });
      afterAll(() => store.stop());
      tests(name);
    });
  overStore('Redis', hasRedis(), async () => {
    const server = await startRedis();
    return shareStore(server, (lease) => ({ redis: server.url, lease }));
  });
  overStore('PostgreSQL', hasPostgres(), async () => {
    const server = await startPostgres();
    return shareStore(server, (lease) => ({ postgres: server.connectionString, lease }));
  });
}

/** Opens a server's store for the test, which logs users in with it. */
export async function shareStore(
  server: Pick<StoreServer, 'kill' | 'restart' | 'stop'>,
  shared: StoreServer['shared'],
): Promise<StoreServer> {
  const { tokenStore, close } = await openStore(shared(30));
  return {
    shared,
    tokenStore,
    kill: server.kill,
    restart: server.restart,
    stop: async () => {
      await close();
      await server.stop();
    },
  };
}

/** Several processes of one application, and the service. */
export interface Fleet {
  readonly service: Emulator;
  readonly workers: readonly Worker[];
  /** Lets so many seconds pass for all, the service included. */
  advance(seconds: number): Promise<void>;
  tokenRequests(): number;
  /** Starts a process of this version in place of another one, which then ends in good order. */
  replace(index: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts processes over the store of {@link overEachStore}, in which these users are logged in. They end with the test. */
export async function openFleet(options: FleetOptions = {}): Promise<Fleet> {
  const fleet = await startFleet(store, options);
  onTestFinished(() => fleet.close());
  return fleet;
}

/** Starts processes over a shared store in which these users are logged in. */
export async function startFleet({ shared, tokenStore }: StoreServer, given: FleetOptions): Promise<Fleet> {
  const { processes = 4, users = ['1'], lease = 30, timeout = 120_000, script, strategy = {}, ...options } = given;
  const names = users.map((id) => ({ id, name: `User ${id}`, projects: [] }));
  const service = await startEmulator({ ...options, users: names });
  const world = await startWorld({ running: service, strategy: { tokenStore, grantId: byUser } });
  for (const user of users) await world.logIn(new Browser(), user);
  await world.close();
  service.requests.length = 0;
  const settings = { ...service.options, concurrency: options.concurrency, timeout, ...strategy };
  const start = (version?: string) => Worker.start(shared(lease), settings, version);
  const workers = await Promise.all(Array.from({ length: processes }, () => start(script)));
  let aheadSeconds = 0;
  return {
    service,
    workers,
    advance: async (seconds) => {
      service.advance(seconds);
      aheadSeconds += seconds;
      await Promise.all(workers.map((worker) => worker.advance(seconds)));
    },
    tokenRequests: () => service.requests.filter(({ path }) => path === '/oauth/token').length,
    replace: async (index) => {
      const next = await start();
      await next.advance(aheadSeconds);
      const [former] = workers.splice(index, 1, next);
      await former?.close();
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.release()));
      await service.close();
    },
  };
}

interface FleetOptions extends Pick<EmulatorOptions, 'refreshTokenReuse' | 'concurrency' | 'latency' | 'log'> {
  readonly processes?: number;
  /** Further options of the processes' strategies, as JSON. */
  readonly strategy?: object;
  readonly users?: readonly string[];
  /** Seconds. */
  readonly lease?: number;
  /** Milliseconds, for a token request. Default: so long that no event of a test comes later. */
  readonly timeout?: number;
  /** What the processes run, if not this version of the package. */
  readonly script?: string | undefined;
}
