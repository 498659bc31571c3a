import { integer, keyPrefix, readOptions, withDefault } from '../checks.js';
import { watchOver } from '../databases/change-feed.js';
import { type ListedTokenStore, leaseSeconds, type TokenStore, ttlSeconds } from '../stores/token-store.js';
import { connectionOf, type RedisClientLike } from './redis-connection.js';
import { grantIdsIn, redisRecords } from './redis-records.js';

export type { RedisClientLike } from './redis-connection.js';

const MAX_REPLICAS = 10;

/** Options of {@link redisTokenStore}. */
export interface RedisTokenStoreOptions {
  /** Prefix of every key, 1 to 64 printable ASCII characters without white space and slashes. Default: `oauth-app-grant:`. */
  readonly prefix?: string | undefined;
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. At least the strategy's `timeout` and 5 s
   * more, or a slow refresh outlives its lock: the strategy warns of a shorter one. Default: 30.
   */
  readonly lease?: number | undefined;
  /**
   * Number of replicas that must confirm a write (`WAIT`), 0 to 10. With 0, any failover can lose the last writes. With
   * fewer than the primary has, a manual failover can, while the former primary still accepts writes. A save that fewer
   * confirm within 100 ms is repeated until they do, and the tokens are used from memory until then. `WAIT` blocks other
   * commands on the connection: with Sentinel or Cluster, give the store a separate client. Default: 0.
   */
  readonly replicas?: number | undefined;
}

/**
 * Returns a token store in Redis, with all methods: processes and hosts that share the Redis refresh a grant once
 * between them. Works with Redis and Valkey. A grant is one key that expires, a lock another one.
 *
 * `list` scans the keys, those of each primary of a Cluster, and blocks none. `watch` subscribes to the channel
 * `<prefix>changed` on a duplicate of the client. It needs the right to subscribe and to publish.
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
export function redisTokenStore(
  client: RedisClientLike,
  options: RedisTokenStoreOptions = {},
): ListedTokenStore & Pick<TokenStore, 'watch'> {
  const connection = connectionOf(client);
  const settings = readOptions('redisTokenStore', options, {
    prefix: withDefault('oauth-app-grant:', keyPrefix),
    ttl: ttlSeconds,
    lease: leaseSeconds,
    replicas: withDefault(0, integer(0, MAX_REPLICAS, 'replicas')),
  });
  const channel = `${settings.prefix}changed`;
  return {
    ...redisRecords(connection, { ...settings, channel }),
    list: (prefix) => grantIdsIn(connection, settings.prefix, prefix),
    ...(connection.listen && { watch: watchOver(connection.listen(channel)) }),
  };
}
