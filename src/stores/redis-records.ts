import { DEFAULT_LEASE_SECONDS, leaseLock } from './lease-lock.js';
import { connectionOf, type RedisClientLike, type RedisConnection, reply } from './redis-connection.js';
import { parseGrant, type TokenStore } from './token-store.js';

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
 * Returns the token store of a session store that is connect-redis over node-redis: under its keys, with `update` and
 * `lock`. Returns `undefined` for any other store, and where a serializer of the application's own writes the sessions.
 */
export function redisStoreOfSessions(
  store: object,
  { prefix, ttl }: { readonly prefix: string; readonly ttl: number },
): Required<TokenStore> | undefined {
  if (!('client' in store && 'prefix' in store && 'scanCount' in store && 'serializer' in store)) return undefined;
  const { client, serializer } = store;
  if (serializer !== JSON || typeof client !== 'object' || client === null || !('isOpen' in client)) return undefined;
  const connection = connectionOf(client as RedisClientLike);
  return redisRecords(connection, { prefix: `${store.prefix}${prefix}`, ttl, lease: DEFAULT_LEASE_SECONDS });
}

/** Returns a token store over a connection: a key that expires for each grant, and one for each lock. */
export function redisRecords(
  connection: RedisConnection,
  { prefix, ttl, lease }: { readonly prefix: string; readonly ttl: number; readonly lease: number },
): Required<TokenStore> {
  const [ttlMs, leaseMs] = [Math.ceil(ttl * 1000), Math.ceil(lease * 1000)];
  // A grant id holds no white space, so no grant ever has the key of a lock.
  const lockKey = (id: string): string => `lock ${id}`;
  const run = (verb: string, script: string, key: string, ...args: (string | number)[]): Promise<string | undefined> =>
    reply(connection, verb, prefix + key, ['EVAL', script, '1', prefix + key, ...args.map(String)]);
  const get = (id: string): Promise<string | undefined> =>
    connection.readsPrimary ? reply(connection, 'read', prefix + id, ['GET', prefix + id]) : run('read', GET, id);
  // JSON, as all records: a session store that lists its keys finds nothing that it cannot parse.
  const leaseOf = (owner: string): string => JSON.stringify({ owner });
  const leases = {
    take: async (id: string, owner: string) => (await run('lock', TAKE, lockKey(id), leaseOf(owner), leaseMs)) === '1',
    release: async (id: string, owner: string) => void (await run('unlock', RELEASE, lockKey(id), leaseOf(owner))),
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
