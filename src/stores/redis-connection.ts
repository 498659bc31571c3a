import { withMethods, wrong } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { withTimeout } from './time-limit.js';

/** A client of node-redis 4 or later: single, pool, Sentinel or Cluster. */
export interface NodeRedisLike {
  sendCommand(...args: never[]): Promise<unknown>;
  readonly isOpen: boolean;
}

/** A client of ioredis or iovalkey: single, Sentinel or Cluster. */
export interface IoRedisLike {
  call(...args: never[]): Promise<unknown>;
  readonly status: string;
}

/** The part of a Redis client that is used: it sends commands. */
export type RedisClientLike = NodeRedisLike | IoRedisLike;

/** How long one command may take, in milliseconds. Shorter than the patience of a browser's user. */
const COMMAND_MS = 5000;

/** One way to send commands, whatever the client. */
export interface RedisConnection {
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** False while there is no connection. A client that cannot tell is always tried. */
  isReady(): boolean;
  /** Whether a plain GET goes to the primary. A script always does, but has to wait while writes are paused. */
  readonly readsPrimary: boolean;
}

type Sender = (...args: unknown[]) => Promise<unknown>;

/** Adapts a client. @throws ConfigurationError if it is of no kind that can be used */
export function connectionOf(client: RedisClientLike): RedisConnection {
  const expected = 'a client of node-redis 4 or later, ioredis or iovalkey';
  const given = withMethods<object>(expected, [])('client', client);
  const field = (name: string): unknown => Reflect.get(given, name);
  if (typeof field('call') === 'function' && typeof field('status') === 'string') {
    const call = (field('call') as Sender).bind(given);
    let wasReady = false;
    return {
      send: (_key, command) => call(...command),
      // Before its first connection it may queue commands: there is nothing yet that a late one could undo.
      isReady: () => {
        const status = String(field('status'));
        wasReady ||= status === 'ready';
        return status === 'ready' || (!wasReady && ['wait', 'connecting', 'connect'].includes(status));
      },
      readsPrimary: [undefined, 'master'].includes(record(field('options')).scaleReads as string | undefined),
    };
  }
  // The clients of node-redis 3, and later ones in their legacy mode, call back and return no promise.
  const isNodeRedis = typeof field('sendCommand') === 'function' && typeof field('isOpen') === 'boolean';
  if (!isNodeRedis || record(field('options')).legacyMode)
    throw wrong('client', `expected ${expected}, got another object`);
  const send = (field('sendCommand') as Sender).bind(given);
  const isCluster = field('slots') !== undefined;
  const isSentinel = typeof field('getMasterNode') === 'function';
  return {
    send: (key, command) => {
      // The key leads to the node that has it. `false`: not to a replica.
      if (isCluster) return send(key, false, command);
      return isSentinel ? send(false, command) : send(command);
    },
    isReady: () => field('isReady') !== false,
    readsPrimary: true,
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Sends a command within the time limit, and returns its reply as text. @throws TokenStoreError for every failure */
export async function reply(
  connection: RedisConnection,
  verb: string,
  key: string,
  command: readonly string[],
): Promise<string | undefined> {
  if (!connection.isReady()) throw new TokenStoreError(`Redis is not connected: could not ${verb} a grant.`);
  const late = (): TokenStoreError => new TokenStoreError(`Redis did not ${verb} a grant within ${COMMAND_MS} ms.`);
  try {
    const answer = await withTimeout(connection.send(key, command), COMMAND_MS, late);
    if (answer === null || answer === undefined) return undefined;
    // Depending on its type mapping a client returns strings as Buffers, and numbers as strings or bigints.
    return answer instanceof Uint8Array ? Buffer.from(answer).toString('utf8') : String(answer);
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`Redis could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}
