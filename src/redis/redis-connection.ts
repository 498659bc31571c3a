import { optionError, withMethods } from '../checks.js';
import type { ListenForChanges } from '../databases/change-feed.js';

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

/** One way to send commands, whatever the client. */
export interface RedisConnection {
  /** Sends commands to the node that has the key, in order and over one connection. Rejects if one of them fails. */
  send(key: string, commands: readonly (readonly string[])[]): Promise<readonly unknown[]>;
  /** False while there is no connection. A client that does not report it is always tried. */
  isReady(): boolean;
  /** Whether a plain GET goes to the primary. A script always does, but has to wait while writes are paused. */
  readonly readsPrimary: boolean;
  /** What the client puts before every key that it sends, and leaves in those that it gets. */
  readonly keyPrefix: string;
  /** Resolves to the primaries that have all keys between them: several in a Cluster. */
  primaries(): Promise<readonly SendCommand[]>;
  /**
   * Opens a separate connection to a server that receives all messages, including those published elsewhere in the Cluster.
   * `undefined` for a client that cannot be duplicated.
   */
  readonly listen: ((channel: string) => ListenForChanges) | undefined;
}

/** Sends a command to one server. */
export type SendCommand = (command: readonly string[]) => Promise<unknown>;

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

/** The part of a client of one node that is used. Both packages have it. */
interface NodeClient {
  duplicate(options?: object): NodeClient;
  on(event: string, listener: (...args: string[]) => unknown): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  ping(): Promise<unknown>;
}

/** Adapts a client. @throws ConfigurationError if it is of no kind that can be used */
export function connectionOf(client: RedisClientLike): RedisConnection {
  const expected = 'a client of node-redis 4 or later, ioredis or iovalkey';
  const given = new Client(withMethods<object>(expected, [])('client', client));
  if (given.has('call') && typeof given.field('status') === 'string') return ioRedisConnection(given);
  // The clients of node-redis 3, and later ones in their legacy mode, call back and return no promise.
  const isNodeRedis = given.has('sendCommand') && typeof given.field('isOpen') === 'boolean';
  if (!isNodeRedis || given.option('legacyMode'))
    throw optionError('client', `expected ${expected}, got another object`);
  return nodeRedisConnection(given);
}

/** An object of another package, whose types differ from version to version. */
class Client {
  readonly it: object;

  constructor(it: object) {
    this.it = it;
  }

  field(name: string): unknown {
    return Reflect.get(this.it, name);
  }

  has(method: string): boolean {
    return typeof this.field(method) === 'function';
  }

  option(name: string): unknown {
    return Reflect.get(Object(this.field('options')), name);
  }

  method<T = Sender>(name: string): T {
    return (this.field(name) as { bind(client: object): T }).bind(this.it);
  }
}

function ioRedisConnection(client: Client): RedisConnection {
  const isCluster = client.field('isCluster') === true;
  const call = client.method('call');
  const nodes = (): readonly object[] =>
    isCluster ? client.method<(role: string) => object[]>('nodes')('master') : [client.it];
  let wasReady = false;
  return {
    send: async (_key, commands) => {
      if (commands.length === 1 || !isCluster) return await Promise.all(commands.map((command) => call(...command)));
      // A Cluster sends a command without a key to any node, but a pipeline as a whole to the node of its keys.
      const pipeline = client.method<() => IoRedisPipeline>('pipeline')();
      for (const command of commands) pipeline.call(...command);
      const answers = await pipeline.exec();
      return await Promise.all(answers.map(([error, answer]) => (error ? Promise.reject(error) : answer)));
    },
    // Before its first connection it may queue commands: there is nothing yet that a late one could undo.
    isReady: () => {
      const status = String(client.field('status'));
      wasReady ||= status === 'ready';
      return status === 'ready' || (!wasReady && ['wait', 'connecting', 'connect'].includes(status));
    },
    readsPrimary: [undefined, 'master'].includes(client.option('scaleReads') as string | undefined),
    keyPrefix: String(client.option('keyPrefix') ?? ''),
    primaries: async () => nodes().map((node) => (command) => new Client(node).method('call')(...command)),
    listen: subscription(async () =>
      (anyOf(nodes()) as NodeClient).duplicate({ retryStrategy: null, lazyConnect: true }),
    ),
  };
}

function nodeRedisConnection(client: Client): RedisConnection {
  const isCluster = client.field('slots') !== undefined;
  const isSentinel = client.has('getMasterNode');
  const isPool = isSentinel || client.has('execute');
  // The key leads to the node that has it. `false`: not to a replica.
  const route = (key: string): readonly unknown[] => (isCluster ? [key, false] : isSentinel ? [false] : []);
  const send = client.method('sendCommand');
  const nodeOf = (node: unknown): Promise<object> =>
    client.method<(node: unknown) => Promise<object>>('nodeClient')(node);
  const masters = (): readonly unknown[] => client.field('masters') as readonly unknown[];
  const duplicate = async (node: unknown): Promise<NodeClient> => (node as NodeClient).duplicate();
  return {
    send: async (key, commands) => {
      // A pool sends each command over any of its connections, but a pipeline over one.
      if (commands.length === 1 || !isPool)
        return await Promise.all(commands.map((command) => send(...route(key), command)));
      const pipeline = client.method<() => NodeRedisPipeline>('multi')();
      for (const command of commands) pipeline.addCommand(...route(key), command);
      return await pipeline.execAsPipeline();
    },
    isReady: () => client.field('isReady') !== false,
    readsPrimary: true,
    keyPrefix: '',
    primaries: async () => {
      if (!isCluster) return [(command) => send(...route(''), command)];
      const nodes = await Promise.all(masters().map(nodeOf));
      return nodes.map((node) => (command) => new Client(node).method('sendCommand')(command));
    },
    listen:
      client.has('duplicate') || isPool
        ? subscription(async () => {
            if (isCluster) return await duplicate(await nodeOf(anyOf(masters())));
            // A pool cannot subscribe, and a Sentinel client does not report lost connections: the nodes' clients do both.
            if (isSentinel) return (await client.method('_execute')(false, duplicate)) as NodeClient;
            return isPool ? ((await client.method('execute')(duplicate)) as NodeClient) : await duplicate(client.it);
          })
        : undefined,
  };
}

function anyOf<T>(nodes: readonly T[]): T | undefined {
  return nodes[Math.floor(Math.random() * nodes.length)];
}

/** Returns what subscribes to a channel by a new client of one node, which `create` resolves to. */
function subscription(create: () => Promise<NodeClient>): (channel: string) => ListenForChanges {
  return (channel) =>
    async ({ tell, lose, signal }) => {
      const node = await create();
      const client = new Client(node);
      // A node-redis client would reconnect by itself without reporting what it may have missed.
      for (const event of ['error', 'end', 'close', 'reconnecting']) node.on(event, lose);
      signal.addEventListener('abort', () => close(client));
      // What is closed while it connects is open afterwards, in node-redis 6.
      node.on('ready', () => signal.aborted && close(client));
      signal.throwIfAborted();
      await node.connect();
      // An application that has closed its own client, but not the strategy, ends all the same.
      const socket = client.has('unref') ? client : new Client(Object(client.field('stream')));
      if (socket.has('unref')) socket.method<() => void>('unref')();
      node.on('message', (_channel, message) => tell(String(message)));
      // ioredis emits the messages, and takes a second argument for a callback.
      await (client.has('call') ? node.subscribe(channel) : node.subscribe(channel, tell));
      return () => node.ping();
    };
}

/** Closes a client, or ends its attempts to connect, within this call: a client of node-redis that has lost its connection opens the next one right after. */
function close(client: Client): void {
  const method = ['destroy', 'disconnect'].find((name) => client.has(name)) ?? 'quit';
  try {
    const closed: unknown = client.method<() => unknown>(method)();
    if (closed instanceof Promise) closed.catch(() => undefined);
  } catch {
    // It is closed already.
  }
}
