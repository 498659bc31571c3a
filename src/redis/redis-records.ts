import { changeMessage, updateMessage } from '../databases/change-feed.js';
import { type Lease, leaseLock } from '../databases/lease-lock.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { isMark, type LockingStore, type LockingStoreSettings, parseGrant, ttlMsOf } from '../stores/token-store.js';
import { withTimeout } from '../waiting.js';
import type { RedisConnection } from './redis-connection.js';

/** How long one command may take, in milliseconds. Shorter than the patience of a browser's user. */
const COMMAND_MS = 5000;

/** How long a write waits for replicas, in milliseconds. Other commands of the connection wait with it. */
const REPLICA_MS = 100;

/** How many keys one SCAN looks at: it blocks the server for a fraction of a millisecond. */
const SCAN_COUNT = 500;

/** Sends commands within the time limit. @throws TokenStoreError for every failure */
async function answered<T>(connection: RedisConnection, verb: string, send: () => Promise<T>): Promise<T> {
  if (!connection.isReady()) throw new TokenStoreError(`Redis is not connected: could not ${verb} a grant.`);
  const late = (): TokenStoreError => new TokenStoreError(`Redis did not ${verb} a grant within ${COMMAND_MS} ms.`);
  try {
    return await withTimeout(send(), COMMAND_MS, late);
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`Redis could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

/** Returns a reply as text. Depending on its type mapping a client returns strings as Buffers, and numbers as strings or bigints. */
function replyText(answer: unknown): string {
  if (answer === null || answer === undefined) return '';
  return answer instanceof Uint8Array ? Buffer.from(answer).toString('utf8') : String(answer);
}

/** Reads on the primary, as all scripts do, also where the client reads from replicas. */
const GET = `return redis.call('get', KEYS[1])`;
/** Publishes the message of a change, if there is one. A user without the right to publish can still write. */
const TELL = `
if ARGV[#ARGV] ~= '' then redis.pcall('publish', ARGV[#ARGV - 1], ARGV[#ARGV]) end
return 1`;
const SET = `redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])${TELL}`;
const ADD = `if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end${TELL}`;

/** Compares versions as doubles, which represent all safe integers exactly. */
const HAS_VERSION = `
local stored = redis.call('get', KEYS[1])
if not stored then return 0 end
local isJson, grant = pcall(cjson.decode, stored)
if not isJson or type(grant) ~= 'table' or grant.version ~= tonumber(ARGV[1]) then return 0 end`;
const UPDATE_SCRIPT = `${HAS_VERSION}
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])${TELL}`;
const DELETE = `if redis.call('del', KEYS[1]) == 0 then return 0 end${TELL}`;
const DELETE_VERSION = `${HAS_VERSION}
redis.call('del', KEYS[1])${TELL}`;

/**
 * The end of a lease is part of its record, by the clock of Redis. The key expires much later, as the grants do: a Redis
 * that evicts under `volatile-ttl` takes first what expires first. Earlier commits wrote no end, and a key that expires in time.
 */
const LEASE = `
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('get', KEYS[1])
local isJson, lease = pcall(cjson.decode, stored or '')
if not isJson or type(lease) ~= 'table' then lease = nil end`;
/**
 * A lease that seems to last more than twice its length shows that the clock was set back: it counts as ended. The length is
 * the holder's, not that of who asks: processes may have other options.
 */
const TAKE = `${LEASE}
local length = tonumber(ARGV[2])
local longest = lease and 2 * (lease.length or length)
if lease and not (lease.endsAt and (lease.endsAt <= now or lease.endsAt > now + longest)) then return 0 end
local endsAt = string.format('%.0f', now + length)
local record = '{"owner":"' .. ARGV[1] .. '","endsAt":' .. endsAt .. ',"length":' .. ARGV[2] .. '}'
redis.call('set', KEYS[1], record, 'PX', ARGV[3])
return 1`;
const IS_HELD = `${LEASE}
return lease and lease.owner == ARGV[1] and lease.endsAt > now and 1 or 0`;
const RELEASE = `${LEASE}
if not lease or lease.owner ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`;

/** Settings of {@link redisRecords}. */
export interface RedisRecordsSettings extends LockingStoreSettings {
  /** Number of replicas that have to confirm a write. */
  readonly replicas: number;
  /** Channel for messages of changes; `undefined` to publish none. */
  readonly channel: string | undefined;
}

/** Returns a token store over a connection: a key that expires for each grant, and one for each lock. */
export function redisRecords(
  connection: RedisConnection,
  { prefix, ttl, lease, replicas, channel }: RedisRecordsSettings,
): LockingStore {
  const [ttlMs, leaseMs] = [ttlMsOf('', ttl), Math.ceil(lease * 1000)];
  const wait = replicas > 0 ? [['WAIT', String(replicas), String(REPLICA_MS)]] : [];
  const script = (text: string, key: string, args: readonly (string | number)[]): readonly string[] => [
    'EVAL',
    text,
    '1',
    key,
    ...args.map(String),
  ];
  const run = async (verb: string, text: string, id: string, ...args: (string | number)[]) => {
    const commands = [script(text, prefix + id, args), ...(text === RELEASE || text === IS_HELD ? [] : wait)];
    const [answer, copies] = await answered(connection, verb, () => connection.send(prefix + id, commands));
    return { isDone: replyText(answer) === '1', isConfirmed: Number(copies ?? 0) >= replicas };
  };
  /** Returns the last arguments of a script that publishes a change. */
  const telling = (id: string, message: string | undefined): readonly [string, string] =>
    channel === undefined || message === undefined || isMark(id) ? ['', ''] : [channel, message];
  const leases: Required<Lease> = {
    take: async (id, owner) => (await run('lock', TAKE, lockKey(id), owner, leaseMs, Math.max(ttlMs, leaseMs))).isDone,
    isHeld: async (id, owner) => (await run('check', IS_HELD, lockKey(id), owner)).isDone,
    release: async (id, owner) => void (await run('unlock', RELEASE, lockKey(id), owner)),
  };
  return {
    get: async (id) => {
      const key = prefix + id;
      const read = connection.readsPrimary ? ['GET', key] : script(GET, key, []);
      const [record] = await answered(connection, 'read', () => connection.send(key, [read]));
      return parseGrant(replyText(record));
    },
    set: async (id, grant) => {
      const message = telling(id, changeMessage(id, grant.version));
      await run('save', SET, id, JSON.stringify(grant), ttlMsOf(id, ttl), ...message);
    },
    delete: async (id, version) => {
      const message = telling(id, changeMessage(id));
      if (version === undefined) await run('delete', DELETE, id, ...message);
      else await run('delete', DELETE_VERSION, id, version, ...message);
    },
    update: async (id, grant, version) => {
      const record = [JSON.stringify(grant), ttlMsOf(id, ttl), ...telling(id, updateMessage(id, grant, version))];
      let saved = await run('update', UPDATE_SCRIPT, id, version, ...record);
      // A save that is repeated since no replica has confirmed it finds its own record.
      if (!saved.isDone && replicas > 0) saved = await run('update', UPDATE_SCRIPT, id, grant.version, ...record);
      if (saved.isDone && !saved.isConfirmed)
        throw new TokenStoreError(
          `Expected ${replicas} replicas of Redis to confirm a saved grant within ${REPLICA_MS} ms, got fewer.`,
        );
      return saved.isDone;
    },
    add: async (id, grant) => {
      const message = telling(id, changeMessage(id, grant.version));
      return (await run('save', ADD, id, JSON.stringify(grant), ttlMsOf(id, ttl), ...message)).isDone;
    },
    lock: leaseLock(leases, leaseMs),
  };
}

/** Returns the id under which a lock is kept. A grant id holds no white space, so none ever equals it. */
function lockKey(id: string): string {
  return `lock ${id}`;
}

/** Yields the ids of grants that begin with a text: those of one primary after the other, page by page (SCAN). */
export async function* grantIdsIn(connection: RedisConnection, prefix: string, ofIds = ''): AsyncGenerator<string> {
  const start = connection.keyPrefix + prefix;
  const pattern = `${(start + ofIds).replaceAll(/[\\*?[\]]/g, '\\$&')}*`;
  for (const send of await answered(connection, 'list', () => connection.primaries())) {
    let cursor = '0';
    do {
      const scan = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', String(SCAN_COUNT)];
      const [next, keys] = (await answered(connection, 'list', () => send(scan))) as readonly [unknown, unknown[]];
      cursor = replyText(next);
      // One page may have a key twice.
      for (const key of new Set(keys.map(replyText))) {
        const id = key.slice(start.length);
        if (!isMark(id) && !id.startsWith(lockKey(''))) yield id;
      }
    } while (cursor !== '0');
  }
}
