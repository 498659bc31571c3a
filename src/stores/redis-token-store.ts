import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { leaseLock, leaseOption } from './lease-lock.js';
import { prefixOption, refuseUnknownOptions, requireMethods, ttlOption } from './store-options.js';
import { parseGrant, serializeGrant } from './stored-grant.js';
import { withTimeout } from './time-limit.js';
import type { TokenStore } from './token-store.js';

/** What is used of a client of node-redis, version 4 and later, single or cluster. */
export interface RedisClientLike {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** False while there is no connection. A client that cannot tell is always tried. */
  readonly isReady?: boolean;
}

/** Options of {@link redisTokenStore}. */
export interface RedisTokenStoreOptions {
  /** Stands before each key, 1 to 64 printable ASCII characters without white space and slashes. Default: `oauth-app-grant:`. */
  readonly prefix?: string | undefined;
  /** Seconds that a grant is kept after it was last written, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. Must be longer than the longest
   * refresh: twice the strategy's `timeout`, since a request that never left is tried once more. Default: 30.
   */
  readonly lease?: number | undefined;
}

const OWNER = 'redisTokenStore';

/** Milliseconds that one command may take. Shorter than what a browser's user waits for. */
const COMMAND_MS = 5000;

// Everything is a script, reading too: node-redis sends scripts to the primary, never to a replica that lags behind
// or to a client-side cache, and their form is one and the same in all of its versions.
const READ = `return redis.call('get', KEYS[1])`;
const SAVE = `redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`;
const REMOVE = `return redis.call('del', KEYS[1])`;

/** Both versions are compared as doubles, which tell all safe integers apart; neither is ever written as a text. */
const UPDATE = `
local stored = redis.call('get', KEYS[1])
if not stored then return 0 end
local read, grant = pcall(cjson.decode, stored)
if not read or type(grant) ~= 'table' or grant.version ~= tonumber(ARGV[3]) then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

const TAKE = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;
const RELEASE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`;

/**
 * A token store in Redis, with all five methods: processes and hosts that share the Redis refresh a grant once
 * between them. A grant is one key that ends by itself, a lock another one, each beginning with `prefix`.
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
  requireMethods(OWNER, 'client', client, { what: 'a client of node-redis', methods: ['eval'] });
  refuseUnknownOptions(OWNER, options, ['prefix', 'ttl', 'lease']);
  const prefix = prefixOption(OWNER, options.prefix, 'oauth-app-grant:');
  const ttl = milliseconds(ttlOption(OWNER, options.ttl));
  const leaseSeconds = leaseOption(OWNER, options.lease);
  const run = (verb: string, script: string, key: string, ...args: string[]): Promise<string | undefined> =>
    command(client, verb, script, { keys: [prefix + key], arguments: args });
  const lease = {
    take: async (id: string, owner: string) =>
      (await run('lock', TAKE, lockKey(id), owner, milliseconds(leaseSeconds))) === '1',
    release: async (id: string, owner: string) => void (await run('unlock', RELEASE, lockKey(id), owner)),
  };
  return {
    get: async (id) => parseGrant((await run('read', READ, id)) ?? ''),
    set: async (id, grant) => void (await run('save', SAVE, id, serializeGrant(grant), ttl)),
    delete: async (id) => void (await run('delete', REMOVE, id)),
    update: async (id, grant, version) =>
      (await run('update', UPDATE, id, serializeGrant(grant), ttl, String(version))) === '1',
    lock: leaseLock(lease, leaseSeconds * 1000),
  };
}

/** A grant id holds no white space, so no grant ever has this key. */
function lockKey(id: string): string {
  return `lock ${id}`;
}

/** Redis takes whole milliseconds only. */
function milliseconds(seconds: number): string {
  return String(Math.ceil(seconds * 1000));
}

async function command(
  client: RedisClientLike,
  verb: string,
  script: string,
  args: { keys: string[]; arguments: string[] },
): Promise<string | undefined> {
  if (client.isReady === false) throw new TokenStoreError(`Redis is not connected: could not ${verb} a grant.`);
  const late = (): TokenStoreError => new TokenStoreError(`Redis did not ${verb} a grant within ${COMMAND_MS} ms.`);
  try {
    return asText(await withTimeout(client.eval(script, args), COMMAND_MS, late));
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`Redis could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

/** A reply as text: by its type mapping a client may give strings as Buffers, and numbers as strings or bigints. */
function asText(reply: unknown): string | undefined {
  if (reply === null || reply === undefined) return undefined;
  return reply instanceof Uint8Array ? Buffer.from(reply).toString('utf8') : String(reply);
}
