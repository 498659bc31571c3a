import { withMethods, wrong } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { DEFAULT_LEASE_SECONDS, type Lease, leaseLock } from './lease-lock.js';
import { parseGrant, type TokenStore, ttlMsOf } from './token-store.js';
import { withTimeout } from './waiting.js';

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

/** How long a write waits for replicas, in milliseconds. Other commands of the connection wait with it. */
const REPLICA_MS = 100;

/** One way to send commands, whatever the client. */
export interface RedisConnection {
  /** Sends commands to the node that has the key, in order and over one connection. Rejects if one of them fails. */
  send(key: string, commands: readonly (readonly string[])[]): Promise<readonly unknown[]>;
  /** False while there is no connection. A client that cannot tell is always tried. */
  isReady(): boolean;
  /** Whether a plain GET goes to the primary. A script always does, but has to wait while writes are paused. */
  readonly readsPrimary: boolean;
}

type Sender = (...args: unknown[]) => Promise<unknown>;

/** The part of a pipeline of node-redis that is used. */
interface NodeRedisPipeline {
  addCommand(...command: readonly unknown[]): unknown;
  execAsPipeline(): Promise<readonly unknown[]>;
}

/** The part of a pipeline of ioredis that is used. */
interface IoRedisPipeline {
  call(...command: readonly string[]): unknown;
  exec(): Promise<readonly (readonly [error: unknown, reply: unknown])[]>;
}

/** Adapts a client. @throws ConfigurationError if it is of no kind that can be used */
export function connectionOf(client: RedisClientLike): RedisConnection {
  const expected = 'a client of node-redis 4 or later, ioredis or iovalkey';
  const given = withMethods<object>(expected, [])('client', client);
  const field = (name: string): unknown => Reflect.get(given, name);
  if (typeof field('call') === 'function' && typeof field('status') === 'string') {
    const call = (field('call') as Sender).bind(given);
    let wasReady = false;
    return {
      send: async (_key, commands) => {
        if (commands.length === 1 || field('isCluster') !== true)
          return await Promise.all(commands.map((command) => call(...command)));
        // A Cluster sends a command without a key to any node, but a pipeline as a whole to the node of its keys.
        const pipeline = (field('pipeline') as () => IoRedisPipeline).call(given);
        for (const command of commands) pipeline.call(...command);
        const answers = await pipeline.exec();
        return await Promise.all(answers.map(([error, answer]) => (error ? Promise.reject(error) : answer)));
      },
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
  const isCluster = field('slots') !== undefined;
  const isSentinel = typeof field('getMasterNode') === 'function';
  const isPool = isSentinel || typeof field('execute') === 'function';
  // The key leads to the node that has it. `false`: not to a replica.
  const route = (key: string): readonly unknown[] => (isCluster ? [key, false] : isSentinel ? [false] : []);
  const send = (field('sendCommand') as Sender).bind(given);
  return {
    send: async (key, commands) => {
      // A pool sends each command over any of its connections, but a pipeline over one.
      if (commands.length === 1 || !isPool)
        return await Promise.all(commands.map((command) => send(...route(key), command)));
      const pipeline = (field('multi') as () => NodeRedisPipeline).call(given);
      for (const command of commands) pipeline.addCommand(...route(key), command);
      return await pipeline.execAsPipeline();
    },
    isReady: () => field('isReady') !== false,
    readsPrimary: true,
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Sends commands within the time limit, and returns their replies as text. @throws TokenStoreError for every failure */
async function replies(
  connection: RedisConnection,
  verb: string,
  key: string,
  commands: readonly (readonly string[])[],
): Promise<readonly (string | undefined)[]> {
  if (!connection.isReady()) throw new TokenStoreError(`Redis is not connected: could not ${verb} a grant.`);
  const late = (): TokenStoreError => new TokenStoreError(`Redis did not ${verb} a grant within ${COMMAND_MS} ms.`);
  try {
    const answers = await withTimeout(connection.send(key, commands), COMMAND_MS, late);
    return answers.map((answer) => {
      if (answer === null || answer === undefined) return undefined;
      // Depending on its type mapping a client returns strings as Buffers, and numbers as strings or bigints.
      return answer instanceof Uint8Array ? Buffer.from(answer).toString('utf8') : String(answer);
    });
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`Redis could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

/** Reads on the primary, as all scripts do, also where the client reads from replicas. */
const GET = `return redis.call('get', KEYS[1])`;
const SET = `redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`;
const ADD = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;

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
/** A lease that seems to last more than twice its length shows that the clock was set back: it counts as ended. */
const TAKE = `${LEASE}
local length = tonumber(ARGV[2])
if lease and not (lease.endsAt and (lease.endsAt <= now or lease.endsAt > now + 2 * length)) then return 0 end
local record = '{"owner":"' .. ARGV[1] .. '","endsAt":' .. string.format('%.0f', now + length) .. '}'
redis.call('set', KEYS[1], record, 'PX', ARGV[3])
return 1`;
const IS_HELD = `${LEASE}
return lease and lease.owner == ARGV[1] and lease.endsAt > now and 1 or 0`;
const RELEASE = `${LEASE}
if not lease or lease.owner ~= ARGV[1] then return 0 end
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
  return redisRecords(connection, {
    prefix: `${store.prefix}${prefix}`,
    ttl,
    lease: DEFAULT_LEASE_SECONDS,
    replicas: 0,
  });
}

/** Settings of {@link redisRecords}. Times in seconds. */
export interface RedisRecordsSettings {
  readonly prefix: string;
  readonly ttl: number;
  readonly lease: number;
  /** Number of replicas that have to confirm a write. */
  readonly replicas: number;
}

/** Returns a token store over a connection: a key that expires for each grant, and one for each lock. */
export function redisRecords(
  connection: RedisConnection,
  { prefix, ttl, lease, replicas }: RedisRecordsSettings,
): Required<TokenStore> {
  const [ttlMs, leaseMs] = [ttlMsOf('', ttl), Math.ceil(lease * 1000)];
  // A grant id holds no white space, so no grant ever has the key of a lock.
  const lockKey = (id: string): string => `lock ${id}`;
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
    const [answer, copies] = await replies(connection, verb, prefix + id, commands);
    return { isDone: answer === '1', isConfirmed: Number(copies ?? 0) >= replicas };
  };
  const leases: Required<Lease> = {
    take: async (id, owner) => (await run('lock', TAKE, lockKey(id), owner, leaseMs, Math.max(ttlMs, leaseMs))).isDone,
    isHeld: async (id, owner) => (await run('check', IS_HELD, lockKey(id), owner)).isDone,
    release: async (id, owner) => void (await run('unlock', RELEASE, lockKey(id), owner)),
  };
  return {
    get: async (id) => {
      const key = prefix + id;
      const read = connection.readsPrimary ? ['GET', key] : script(GET, key, []);
      const [record] = await replies(connection, 'read', key, [read]);
      return parseGrant(record ?? '');
    },
    set: async (id, grant) => void (await run('save', SET, id, JSON.stringify(grant), ttlMsOf(id, ttl))),
    delete: async (id, version) => {
      if (version === undefined) await run('delete', DELETE, id);
      else await run('delete', DELETE_VERSION, id, version);
    },
    update: async (id, grant, version) => {
      const record = JSON.stringify(grant);
      let saved = await run('update', UPDATE, id, version, record, ttlMs);
      // A save that is repeated since no replica has confirmed it finds its own record.
      if (!saved.isDone && replicas > 0) saved = await run('update', UPDATE, id, grant.version, record, ttlMs);
      if (saved.isDone && !saved.isConfirmed)
        throw new TokenStoreError(
          `Expected ${replicas} replicas of Redis to confirm a saved grant within ${REPLICA_MS} ms, got fewer.`,
        );
      return saved.isDone;
    },
    add: async (id, grant) => (await run('save', ADD, id, JSON.stringify(grant), ttlMs)).isDone,
    lock: leaseLock(leases, leaseMs),
  };
}
