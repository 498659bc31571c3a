import { keyPrefix, readOptions, withDefault, withMethods } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { leaseLock, leaseSeconds } from './lease-lock.js';
import { withTimeout } from './time-limit.js';
import { parseGrant, type TokenStore, ttlSeconds } from './token-store.js';

/** The part of a client of node-redis, version 4 and later, single or cluster, that is used. */
export interface RedisClientLike {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** False while there is no connection. A client that cannot tell is always tried. */
  readonly isReady?: boolean;
}

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

// Everything is a script, reading too: node-redis sends scripts to the primary, never to a replica that lags behind
// or to a client-side cache, and their form is the same in all of its versions.
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
 * between them. A grant is one key that expires, a lock another one.
 *
 * A command rejects at once while the client is not connected, and after 5 s otherwise. Nothing is queued: a write
 * that waits for Redis to come back would undo what happened in between.
 *
 * @param client of node-redis, connected by the application, which also listens for its `error` events
 * @throws {ConfigurationError} if `client` cannot run scripts, or an option is wrong or unknown
 *
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
 * const strategy = new Strategy({ ...options, tokenStore: redisTokenStore(client) });
 */
export function redisTokenStore(client: RedisClientLike, options: RedisTokenStoreOptions = {}): Required<TokenStore> {
  withMethods<RedisClientLike>('a client of node-redis', ['eval'])('client', client);
  const { prefix, ttl, lease } = readOptions('redisTokenStore', options, {
    prefix: withDefault('oauth-app-grant:', keyPrefix),
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  const [ttlMs, leaseMs] = [Math.ceil(ttl * 1000), Math.ceil(lease * 1000)];
  // A grant id holds no white space, so no grant ever has the key of a lock.
  const lockKey = (id: string): string => `lock ${id}`;
  const run = (verb: string, script: string, key: string, ...args: (string | number)[]): Promise<string | undefined> =>
    runScript(client, verb, script, { keys: [prefix + key], arguments: args.map(String) });
  const leases = {
    take: async (id: string, owner: string) => (await run('lock', TAKE, lockKey(id), owner, leaseMs)) === '1',
    release: async (id: string, owner: string) => void (await run('unlock', RELEASE, lockKey(id), owner)),
  };
  return {
    get: async (id) => parseGrant((await run('read', GET, id)) ?? ''),
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

/** Runs a script within the time limit, and returns its reply as text. @throws TokenStoreError for every failure */
async function runScript(
  client: RedisClientLike,
  verb: string,
  script: string,
  args: { keys: string[]; arguments: string[] },
): Promise<string | undefined> {
  if (client.isReady === false) throw new TokenStoreError(`Redis is not connected: could not ${verb} a grant.`);
  const late = (): TokenStoreError => new TokenStoreError(`Redis did not ${verb} a grant within ${COMMAND_MS} ms.`);
  try {
    const reply = await withTimeout(client.eval(script, args), COMMAND_MS, late);
    if (reply === null || reply === undefined) return undefined;
    // Depending on its type mapping a client returns strings as Buffers, and numbers as strings or bigints.
    return reply instanceof Uint8Array ? Buffer.from(reply).toString('utf8') : String(reply);
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`Redis could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}
