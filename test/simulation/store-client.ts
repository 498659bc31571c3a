import type { Package } from './environment.js';
import type { Machine } from './machine.js';
import type { Loss } from './oracle.js';
import { operationOf, type Reply } from './redis-server.js';
import type { World } from './world.js';

/** A token store of the package: all five methods. */
export type StoreClient = ReturnType<Package['redisTokenStore']>;

/** What a token store may lack. Losses of such a store are counted under that name. */
export type Lack = Extract<Loss, 'no lock' | 'no update'>;

/** Returns the option `tokenStore` of one process: the package's own, with a client that sends through the simulated network. */
export function storeClient({ redisTokenStore }: Package, world: World, machine: Machine): StoreClient {
  const store = redisTokenStore({
    isOpen: true,
    sendCommand: (command: readonly string[]) => send(world, machine, command),
  });
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
