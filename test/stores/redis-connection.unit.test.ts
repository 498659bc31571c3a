import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { connectionOf, type RedisClientLike } from '../../src/redis/redis-connection.js';
import { mayLeave } from '../support/leftovers.js';

type Call = readonly [method: string, ...args: unknown[]];
type Method = (...args: never[]) => unknown;

const ok = async () => 'OK';

/** A client with these methods, which may be called on it alone, and what was called. */
function fake(methods: Readonly<Record<string, Method>>, fields: object = {}) {
  const calls: Call[] = [];
  const client: object = Object.assign(new EventEmitter(), fields);
  for (const [name, method] of Object.entries(methods))
    Object.assign(client, {
      [name](this: unknown, ...args: never[]) {
        expect(this).toBe(client);
        calls.push([name, ...args]);
        return method(...args);
      },
    });
  return { calls, client: client as RedisClientLike & EventEmitter };
}

const ioredis = (methods: Readonly<Record<string, Method>> = {}, fields: object = {}) =>
  fake({ call: async (...command) => `reply to ${command.join(' ')}`, ...methods }, { status: 'ready', ...fields });
const nodeRedis = (methods: Readonly<Record<string, Method>> = {}, fields: object = {}) =>
  fake({ sendCommand: async (...args) => `reply to ${args.at(-1)}`, ...methods }, { isOpen: true, ...fields });

test.for<[what: string, client: object]>([
  ['an ioredis client without a status', { call: ok }],
  ['one whose status is no text', { call: ok, status: 200 }],
  ['a client with a status that cannot call', { status: 'ready' }],
  ['a client of node-redis 3', { sendCommand: ok }],
  ['a client that is open and sends no commands', { isOpen: true }],
  ['one in legacy mode', { sendCommand: ok, isOpen: true, options: { legacyMode: true } }],
])('%s cannot be used', ([, client]) => {
  expect(() => connectionOf(client as RedisClientLike)).toThrow(
    /^client: expected a client of node-redis 4 or later, ioredis or iovalkey, got another object/,
  );
});

test('options of another mode do not matter', () => {
  for (const options of [undefined, {}, { legacyMode: false }])
    expect(() => connectionOf(nodeRedis({}, { options }).client)).not.toThrow();
});

describe('a connection that hears of changes', () => {
  // Watchers that are not stopped.
  beforeEach(() => mayLeave(/listener of .*redis-connection/));
  const CLOSING = { destroy: () => undefined };
  const hearing = (methods: Readonly<Record<string, Method>> = CLOSING, fields: object = {}) =>
    fake({ connect: ok, subscribe: ok, ping: async () => 'PONG', ...methods }, fields);
  const nodeOf = (duplicate: () => object) => fake({ duplicate });

  /** Starts to listen by a client, with what was told. */
  async function listen(client: RedisClientLike, signal: AbortSignal = new AbortController().signal) {
    const told: string[] = [];
    const tell = (message: string) => void told.push(message);
    const lose = () => void told.push('lost');
    return { told, ping: await connectionOf(client).listen?.('channel')({ tell, lose, signal }) };
  }

  const options = { retryStrategy: null, lazyConnect: true };
  type Fake = ReturnType<typeof fake>;
  test.for<[of: string, open: (node: Fake) => Fake, asked: Call[], how: unknown[]]>([
    ['node-redis', ({ client }) => nodeRedis({ duplicate: () => client }), [['duplicate']], []],
    [
      'a pool of node-redis',
      (node) => nodeRedis({ execute: (use: (given: object) => unknown) => use(nodeOf(() => node.client).client) }),
      [['execute', expect.any(Function)]],
      [],
    ],
    [
      'node-redis over Sentinels',
      (node) =>
        nodeRedis({
          getMasterNode: () => undefined,
          execute: () => undefined,
          _execute: (_onReplica: boolean, use: (given: object) => unknown) => use(nodeOf(() => node.client).client),
        }),
      [['_execute', false, expect.any(Function)]],
      [],
    ],
    [
      'node-redis over a Cluster',
      (node) =>
        nodeRedis(
          { nodeClient: async () => nodeOf(() => node.client).client, duplicate: () => undefined },
          { slots: [], masters: ['master'] },
        ),
      [['nodeClient', 'master']],
      [],
    ],
    ['ioredis', ({ client }) => ioredis({ duplicate: () => client }), [['duplicate', options]], ['call']],
    [
      'ioredis over a Cluster',
      (node) => ioredis({ nodes: () => [ioredis({ duplicate: () => node.client }).client] }, { isCluster: true }),
      [['nodes', 'master']],
      ['call'],
    ],
  ])('is one of its own of %s', async ([, open, asked, how]) => {
    const isIoRedis = how.includes('call');
    const node = hearing({ ...CLOSING, ...(isIoRedis && { call: ok }), unref: () => undefined });
    const { client, calls } = open(node);
    const { told, ping } = await listen(client);
    expect(calls).toEqual(asked);
    const subscription: Call = ['subscribe', 'channel', ...(isIoRedis ? [] : [expect.any(Function)])];
    expect(node.calls).toEqual([['connect'], ['unref'], subscription]);
    // ioredis emits the messages; node-redis calls back.
    if (isIoRedis) node.client.emit('message', 'channel', 'id 1');
    else (node.calls[2]?.[2] as ((message: string) => void) | undefined)?.('id 1');
    expect(told).toEqual(['id 1']);
    expect(await ping?.()).toBe('PONG');
  });

  test('is of any node of a Cluster', async () => {
    const chance = vi.spyOn(Math, 'random');
    onTestFinished(() => chance.mockRestore());
    const node = nodeOf(() => hearing().client).client;
    const { client, calls } = nodeRedis(
      { nodeClient: async () => node, duplicate: () => undefined },
      { slots: [], masters: ['one', 'two', 'three'] },
    );
    for (const random of [0, 0.5, 0.99]) {
      chance.mockReturnValue(random);
      await listen(client);
    }
    expect(calls.map(([, name]) => name)).toEqual(['one', 'two', 'three']);
  });

  test('is not there for a client that cannot be duplicated', () => {
    expect(connectionOf(nodeRedis().client).listen).toBeUndefined();
  });

  test('is lost with any event that tells of it', async () => {
    const node = hearing();
    const { told } = await listen(nodeRedis({ duplicate: () => node.client }).client);
    for (const event of ['error', 'end', 'close', 'reconnecting', 'connect']) node.client.emit(event);
    expect(told).toEqual(['lost', 'lost', 'lost', 'lost']);
  });

  test('keeps no process alive, be it by itself or by its stream', async () => {
    const stream = fake({ unref: () => undefined });
    for (const fields of [{ stream: stream.client }, { stream: {} }, {}])
      await listen(ioredis({ duplicate: () => hearing({ call: ok, ...CLOSING }, fields).client }).client);
    expect(stream.calls).toEqual([['unref']]);
  });

  test.for<[methods: string[], closed: string]>([
    [['destroy', 'disconnect', 'quit'], 'destroy'],
    [['disconnect', 'quit'], 'disconnect'],
    [['quit'], 'quit'],
  ])('of a client with the methods %j is closed by %s when its signal aborts', async ([methods, closed]) => {
    const faults: Method[] = [() => undefined, () => Promise.reject(new Error('closed')), throwing, ok];
    for (const fault of faults) {
      const stopping = new AbortController();
      const node = hearing(Object.fromEntries(methods.map((name) => [name, fault])));
      await listen(nodeRedis({ duplicate: () => node.client }).client, stopping.signal);
      node.client.emit('ready');
      expect(node.calls.map(([name]) => name)).toEqual(['connect', 'subscribe']);
      stopping.abort();
      expect(node.calls.at(-1)).toEqual([closed]);
      // Open afterwards all the same.
      node.client.emit('ready');
      expect(node.calls.map(([name]) => name).slice(2)).toEqual([closed, closed]);
    }
  });

  test('is not opened once its signal has aborted', async () => {
    const reason = new Error('stopped');
    const node = hearing();
    const listening = listen(nodeRedis({ duplicate: () => node.client }).client, AbortSignal.abort(reason));
    await expect(listening).rejects.toBe(reason);
    expect(node.calls).toEqual([]);
  });
});

function throwing(): never {
  throw new Error('closed already');
}
