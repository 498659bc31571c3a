import type { Package } from './environment.js';
import type { Machine } from './machine.js';
import type { Loss } from './oracle.js';
import { operationOf, type Reply } from './redis-server.js';
import { type Outcome, operationOf as operationOfSql } from './sqlite-file.js';
import type { World } from './world.js';

/** A token store of the package: all five methods. */
export type StoreClient = ReturnType<Package['redisTokenStore']>;

/** Which of the package's stores. */
export type StoreKind = 'redis' | 'sqlite';

/** What a token store may lack. Losses of such a store are counted under that name. */
export type Lack = Extract<Loss, 'no lock' | 'no update'>;

/**
 * Returns the option `tokenStore` of one process: the package's own store. That in Redis has a client that sends its commands
 * through the simulated network; that in SQLite has the file of the machine.
 */
export function storeClient(
  { redisTokenStore, sqliteTokenStore }: Package,
  world: World,
  machine: Machine,
): StoreClient {
  const store =
    world.options.store === 'sqlite'
      ? sqliteTokenStore(databaseOf(world, machine))
      : redisTokenStore({ isOpen: true, sendCommand: (command: readonly string[]) => send(world, machine, command) });
  const { lock, update, ...rest } = store;
  // What comes of a save is known to the observer as the package's own store tells it: a time-out is a refusal, too.
  const watched: StoreClient['update'] = async (...save) => {
    try {
      return await update(...save);
    } catch (error) {
      world.oracle.saveFailed(machine, save[0]);
      throw error;
    }
  };
  const { lacks } = world.options;
  return {
    ...rest,
    ...(lacks !== 'no lock' && { lock }),
    ...(lacks !== 'no update' && { update: watched }),
  } as StoreClient;
}

/** Returns the file as a process has it opened, in the form of better-sqlite3. */
function databaseOf(world: World, machine: Machine): Parameters<Package['sqliteTokenStore']>[0] {
  const execute = (sql: string, values: readonly (string | number)[]): Outcome => {
    const { oracle, sqlite, store } = world;
    const { op, key } = operationOfSql(sql, values);
    const settled = oracle.storeAsked(machine, op);
    try {
      const outcome = world.perform(machine, op, () =>
        store.perform(machine, op, key, () => sqlite.execute(sql, values)),
      );
      const [row] = outcome.rows;
      if (op === 'get' && row) oracle.read(String(row.record), machine);
      return outcome;
    } catch (error) {
      oracle.storeFailed(machine);
      throw error;
    } finally {
      settled();
    }
  };
  return {
    exec: (sql) => execute(sql, []),
    prepare: (sql) => ({
      all: (...values) => [...execute(sql, values).rows],
      run: (...values) => ({ changes: execute(sql, values).changes }),
    }),
  };
}

/** Sends a command to the server, as a connected client does. */
function send(world: World, machine: Machine, command: readonly string[]): Promise<Reply> {
  const { oracle, redis, store } = world;
  const op = operationOf(command);
  const key = (command[0] === 'EVAL' ? command[3] : command[1]) ?? '';
  const settled = oracle.storeAsked(machine, op);
  let performedAt: number | undefined;
  const perform = () => {
    performedAt ??= world.scheduler.now;
    return store.perform(machine, op, key, () => redis.execute(command));
  };
  return new Promise((resolve, reject) => {
    world.call(machine, 'store', op, perform, {
      answer: (reply) => {
        settled(performedAt);
        if (op === 'get' && typeof reply === 'string') oracle.read(reply, machine);
        resolve(reply);
      },
      fail: (code) => {
        settled();
        oracle.storeFailed(machine);
        reject(Object.assign(new Error(`the store's connection failed: ${code}`), { code }));
      },
    });
  });
}
