import { keyPrefix, readOptions, withDefault, withMethods, wrong } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { leaseLock, leaseSeconds } from './lease-lock.js';
import { withTimeout } from './time-limit.js';
import { parseGrant, type TokenStore, ttlSeconds } from './token-store.js';

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

/** Options of {@link redisTokenStore}. */
export interface RedisTokenStoreOptions {
  /** Prefix of every key, 1 to 64 printable ASCII characters without white space and slashes. Default: `oauth-app-grant:`. */
  readonly prefix?: string | undefined;
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. Must exceed the longest refresh: twice
   * the strategy's `timeout`, since a request that never left is sent once more. Default: 30.
   */
  readonly lease?: number | undefined;
}

/** How long one command may take, in milliseconds. Shorter than the patience of a browser's user. */
const COMMAND_MS = 5000;

/** Reads on the primary, as all scripts do, also where the client reads from replicas. */
const GET = `return redis.call('get', KEYS[1])`;
const SET = `redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`;

/** Compares versions as doubles, which represent all safe integers exactly. */
const HAS_VERSION = `
local stored = redis.call('get', KEYS[1])
if not stored then return 0 end
local isJson, grant = pcall(cjson.decode, stored)
if not isJson or type(grant) ~= 'table' or grant.version ~= tonumber(ARGV[1]) then return 0 end`;
const UPDATE = `${HAS_VERSION}
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;
const DELETE = `return redis.call('del', KEYS[1])`;
const DELETE_VERSION = `${HAS_VERSION}
return redis.call('del', KEYS[1])`;

const TAKE = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;
const RELEASE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`;

/**
 * Returns a token store in Redis, with all five methods: processes and hosts that share the Redis refresh a grant once
 * between them. Works with Redis and Valkey. A grant is one key that expires, a lock another one.
 *
 * A command rejects at once while the client is not connected, and after 5 s otherwise. Nothing is queued: a write
 * that waits for Redis to come back would undo what happened in between.
 *
 * Reads go to the primary: a replica may lag behind, and a refresh must not act on an old grant.
 *
 * @param client of node-redis (4 and later), ioredis or iovalkey, single, Sentinel or Cluster. The application connects
 *   it and listens for its `error` events
 * @throws {ConfigurationError} if `client` is something else, or an option is wrong or unknown
 *
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
 * const strategy = new Strategy({ ...options, tokenStore: redisTokenStore(client) });
 */
export function redisTokenStore(client: RedisClientLike, options: RedisTokenStoreOptions = {}): Required<TokenStore> {
  const connection = connectionOf(client);
  const { prefix, ttl, lease } = readOptions('redisTokenStore', options, {
    prefix: withDefault('oauth-app-grant:', keyPrefix),
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  const [ttlMs, leaseMs] = [Math.ceil(ttl * 1000), Math.ceil(lease * 1000)];
  // A grant id holds no white space, so no grant ever has the key of a lock.
  const lockKey = (id: string): string => `lock ${id}`;
  const run = (verb: string, script: string, key: string, ...args: (string | number)[]): Promise<string | undefined> =>
    reply(connection, verb, prefix + key, ['EVAL', script, '1', prefix + key, ...args.map(String)]);
  const get = (id: string): Promise<string | undefined> =>
    connection.readsPrimary ? reply(connection, 'read', prefix + id, ['GET', prefix + id]) : run('read', GET, id);
  const leases = {
    take: async (id: string, owner: string) => (await run('lock', TAKE, lockKey(id), owner, leaseMs)) === '1',
    release: async (id: string, owner: string) => void (await run('unlock', RELEASE, lockKey(id), owner)),
  };
  return {
    get: async (id) => parseGrant((await get(id)) ?? ''),
    set: async (id, grant) => void (await run('save', SET, id, JSON.stringify(grant), ttlMs)),
    delete: async (id, version) => {
      if (version === undefined) await run('delete', DELETE, id);
      else await run('delete', DELETE_VERSION, id, version);
    },
    update: async (id, grant, version) =>
      (await run('update', UPDATE, id, version, JSON.stringify(grant), ttlMs)) === '1',
    lock: leaseLock(leases, leaseMs),
  };
}

/** One way to send commands, whatever the client. */
interface Connection {
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** False while there is no connection. A client that cannot tell is always tried. */
  isReady(): boolean;
  /** Whether a plain GET goes to the primary. A script always does, but has to wait while writes are paused. */
  readonly readsPrimary: boolean;
}

type Sender = (...args: unknown[]) => Promise<unknown>;

/** Adapts a client. @throws ConfigurationError if it is of no kind that can be used */
function connectionOf(client: RedisClientLike): Connection {
  const expected = 'a client of node-redis 4 or later, ioredis or iovalkey';
  const given = withMethods<object>(expected, [])('client', client);
  const field = (name: string): unknown => Reflect.get(given, name);
  if (typeof field('call') === 'function' && typeof field('status') === 'string') {
    const call = (field('call') as Sender).bind(given);
    return {
      send: (_key, command) => call(...command),
      // It connects at the first command where its status is "wait".
      isReady: () => ['ready', 'wait'].includes(String(field('status'))),
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
async function reply(
  connection: Connection,
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
