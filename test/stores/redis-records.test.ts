import { sessionTokenStore } from 'passport-oauth-app';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RedisConnection } from '../../src/redis/redis-connection.js';
import { grantIdsIn, type RedisRecordsSettings, redisRecords } from '../../src/redis/redis-records.js';
import { redisTokenStore } from '../../src/redis/redis-token-store.js';
import { leaseMsOf } from '../../src/stores/lease-lock.js';
import type { HeldLease } from '../../src/stores/token-store.js';
import { installSimulation } from '../simulation/bundle.mjs';

installSimulation();
const { RedisServer } = await import('../simulation/redis-server.js');
const { LuaScripts } = await import('../simulation/lua.js');
const scripts = new LuaScripts();

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-ü' };
const CHANNEL = 'grants:changed';
const SETTINGS: RedisRecordsSettings = { prefix: 'grants:', ttl: 3_600, lease: 30, replicas: 0, channel: CHANNEL };

let now: number;
let redis: InstanceType<typeof RedisServer>;
/** What was published. */
let published: (readonly string[])[];
/** The commands that were sent, with the key of each. */
let sent: { readonly key: string; readonly commands: readonly (readonly string[])[] }[];
/** How many replicas confirm a write. */
let copies: unknown;

beforeEach(() => {
  [now, published, sent, copies] = [0, [], [], 0];
  redis = new RedisServer(() => now);
});

function execute([name = '', ...args]: readonly string[]): unknown {
  if (name === 'WAIT') return copies;
  if (name !== 'EVAL') return redis.execute([name, ...args]);
  const [script = '', count = '', ...rest] = args;
  const keys = rest.slice(0, Number(count));
  return scripts.run(script, keys, rest.slice(keys.length), (command, parameters) => {
    if (command !== 'publish') return redis.execute([command, ...parameters]);
    published.push(parameters);
    return 1;
  });
}

function connection(changes: Partial<RedisConnection> = {}): RedisConnection {
  return {
    send: async (key, commands) => {
      sent.push({ key, commands });
      return commands.map(execute);
    },
    isReady: () => true,
    readsPrimary: true,
    keyPrefix: '',
    primaries: async () => [async (command) => execute(command)],
    listen: undefined,
    ...changes,
  };
}

function open(settings: Partial<RedisRecordsSettings> = {}, changes: Partial<RedisConnection> = {}) {
  return redisRecords(connection(changes), { ...SETTINGS, ...settings });
}

const leftMs = (key: string) => redis.execute(['PTTL', key]);

describe('records in Redis', () => {
  test('are read, replaced and deleted as their versions allow', async () => {
    const store = open();
    expect(await store.get('id')).toBeUndefined();
    expect(await store.add('id', grant)).toBe(true);
    expect(await store.add('id', grant)).toBe(false);
    expect(await store.update('id', grant, 2)).toBe(false);
    expect(await store.update('id', { ...grant, version: 2 }, 1)).toBe(true);
    await store.delete('id', 1);
    expect(await store.get('id')).toEqual({ ...grant, version: 2 });
    await store.delete('id', 2);
    expect(await store.get('id')).toBeUndefined();
    await store.set('id', grant);
    await store.delete('id');
    expect(await store.get('id')).toBeUndefined();
    expect(sent.filter(({ key, commands }) => key !== 'grants:id' || commands.length !== 1)).toEqual([]);
  });

  test.for([
    ['oauth-app+id', 3_600_000],
    ['login:id', 720_000],
    ['limit:id', 60_000],
  ] as const)('under %s end %d ms after they were last written', async ([id, ms]) => {
    const store = open();
    for (const write of [
      () => store.set(id, grant),
      () => store.update(id, grant, 1),
      () => store.delete(id).then(() => store.add(id, grant)),
    ]) {
      await write();
      expect(leftMs(`grants:${id}`)).toBe(ms);
      now += 1_000;
    }
    now += ms;
    expect(await store.get(id)).toBeUndefined();
  });

  test('are read on the primary also where the client reads from replicas', async () => {
    const lagging: RedisConnection['send'] = async (_key, commands) =>
      commands.map((command) => (command[0] === 'GET' ? null : execute(command)));
    const store = open({}, { readsPrimary: false, send: lagging });
    await store.set('id', grant);
    expect(await store.get('id')).toEqual(grant);
    expect(await open({}, { send: lagging }).get('id')).toBeUndefined();
  });

  test.for<[form: string, as: (reply: unknown) => unknown]>([
    ['Buffers and bigints', (reply) => (typeof reply === 'number' ? BigInt(reply) : Buffer.from(`${reply ?? ''}`))],
    ['texts', (reply) => `${reply ?? ''}`],
    ['byte arrays', (reply) => (typeof reply === 'number' ? reply : new TextEncoder().encode(`${reply ?? ''}`))],
  ])('are understood where the client gives %s', async ([, as]) => {
    const send: RedisConnection['send'] = async (_key, commands) => commands.map((command) => as(execute(command)));
    const store = open({ replicas: 1 }, { send });
    copies = 1;
    await store.set('id', grant);
    expect(await store.get('id')).toEqual(grant);
    expect(await store.get('none')).toBeUndefined();
    expect(await store.update('id', grant, 1)).toBe(true);
    expect(await store.update('id', { ...grant, version: 3 }, 7)).toBe(false);
  });

  test.for([undefined, null])('are not there where the client gives %s', async (reply) => {
    expect(await open({}, { send: async () => [reply] }).get('id')).toBeUndefined();
    expect(await open({}, { send: async () => [reply] }).add('id', grant)).toBe(false);
  });

  test('tell of what others have to know, if anybody listens', async () => {
    const store = open();
    const silent = open({ channel: undefined });
    const login = 'login:id';
    for (const [change, ...messages] of [
      [() => store.set('id', grant), 'id 1'],
      [() => store.add('new', { ...grant, version: 5 }), 'new 5'],
      [() => store.add('new', grant)],
      [() => store.update('id', grant, 1), 'id'],
      [() => store.update('id', { ...grant, version: 2 }, 1)],
      [() => store.update('id', { ...grant, version: 1 }, 1)],
      [() => store.delete('id', 1)],
      [() => store.delete('id', 2), 'id'],
      [() => store.delete('new'), 'new'],
      [() => store.delete('new')],
      [() => store.set(login, grant)],
      [() => store.update(login, grant, 1)],
      [() => store.delete(login, 1)],
      [() => store.add(login, grant)],
      [() => store.delete(login)],
      [() => silent.set('id', grant)],
      [() => silent.delete('id')],
    ] as const) {
      await change();
      expect(published.splice(0)).toEqual(messages.map((message) => [CHANNEL, message]));
    }
  });
});

describe('a lock in Redis', () => {
  test('is a record of its own, whose key outlasts its lease, and which a release deletes', async () => {
    for (const [settings, keyMs, leaseMs] of [
      [{ ttl: 3_600 }, 3_600_000, 30_000],
      [{ ttl: 1, lease: 30.0001 }, 30_001, 30_001],
    ] as const) {
      const told = await open(settings).lock('id', async (lease) => {
        expect(leftMs('grants:lock id')).toBe(keyMs);
        return lease;
      });
      expect(told?.leaseMs).toBe(leaseMs);
      expect(redis.read('grants:lock id')).toBeUndefined();
    }
  });

  test('is held until its lease has ended, and by its owner alone', async () => {
    const [one, other] = [open(), open()];
    const held: unknown[] = [];
    await one.lock('id', async (lease) => {
      const isHeld = async (each: HeldLease | undefined) => held.push(await each?.isHeld());
      await isHeld(lease);
      now += 29_999;
      await isHeld(lease);
      now += 1;
      await isHeld(lease);
      await other.lock('id', async (others) => {
        await isHeld(others);
        await isHeld(lease);
      });
    });
    expect(held).toEqual([true, true, false, true, false]);
  });
});

describe('replicas', () => {
  const next = { ...grant, version: 2 };
  const commands = () => sent.splice(0).map((each) => each.commands.map(([name]) => name).join(' '));

  test('have to confirm writes, and locks that are taken, as many as the option says', async () => {
    const store = open({ replicas: 2 });
    copies = 2;
    await store.set('id', grant);
    expect(sent[0]?.commands[1]).toEqual(['WAIT', '2', '100']);
    await store.get('id');
    expect(await store.update('id', next, 1)).toBe(true);
    expect(await store.add('id', grant)).toBe(false);
    await store.lock('id', async (lease) => expect(await lease?.isHeld()).toBe(true));
    await store.delete('id', 2);
    await store.delete('id');
    const [write, lock] = ['EVAL WAIT', ['EVAL WAIT', 'EVAL', 'EVAL']];
    expect(commands()).toEqual([write, 'GET', write, write, ...lock, write, write]);
  });

  test.for([
    [0, 0, 'saved'],
    [1, 0, 'refused'],
    [1, 1, 'saved'],
    [1, 3, 'saved'],
    [2, 1, 'refused'],
    [1, undefined, 'refused'],
  ] as const)('of which %d have to confirm a save, and %s do, have it %s', async ([replicas, confirming, outcome]) => {
    const store = open({ replicas });
    await store.set('id', grant);
    copies = confirming;
    const message = `Expected ${replicas} replicas of Redis to confirm a saved grant within 100 ms, got fewer.`;
    const saved = store.update('id', next, 1);
    if (outcome === 'saved') expect(await saved).toBe(true);
    else await expect(saved).rejects.toMatchObject({ name: 'TokenStoreError', message });
    // Another process was faster: that is known.
    expect(await store.update('id', { ...grant, version: 3 }, 1)).toBe(false);
    // Repeated, once they confirm it.
    copies = replicas;
    expect(await store.update('id', next, 1)).toBe(replicas > 0);
  });

  test('cost no second command where a save was confirmed, or nobody has to', async () => {
    const [one, none] = [open({ replicas: 1 }), open()];
    copies = 1;
    await one.set('id', grant);
    await one.update('id', next, 1);
    await none.update('id', next, 1);
    expect(commands()).toEqual(['EVAL WAIT', 'EVAL WAIT', 'EVAL']);
  });
});

describe('a failure of Redis', () => {
  test('tells what was not done, and nothing is sent while there is no connection', async () => {
    const send = async () => Promise.reject(new Error('broken'));
    const [failing, away] = [open({}, { send }), open({}, { isReady: () => false })];
    const list = (of: Partial<RedisConnection>) => grantIdsIn(connection(of), 'grants:').next();
    const calls = (store: typeof failing) =>
      [
        ['read', () => store.get('id')],
        ['save', () => store.set('id', grant)],
        ['save', () => store.add('id', grant)],
        ['update', () => store.update('id', grant, 1)],
        ['delete', () => store.delete('id')],
        ['delete', () => store.delete('id', 1)],
        ['lock', () => store.lock('id', async () => undefined)],
      ] as const;
    for (const [verb, call] of [...calls(failing), ['list', () => list({ primaries: send })] as const])
      await expect(call()).rejects.toMatchObject({
        ...{ name: 'TokenStoreError', message: `Redis could not ${verb} a grant.`, cause: { message: 'broken' } },
      });
    for (const [verb, call] of [...calls(away), ['list', () => list({ isReady: () => false })] as const])
      await expect(call()).rejects.toMatchObject({
        ...{ name: 'TokenStoreError', message: `Redis is not connected: could not ${verb} a grant.` },
      });
    expect(sent).toEqual([]);
  });

  test('while a save is repeated is told as one of the first', async () => {
    const answers = [[0, 1]];
    const send = async () => answers.pop() ?? Promise.reject(new Error('broken'));
    await expect(open({ replicas: 1 }, { send }).update('id', grant, 2)).rejects.toThrow(
      'Redis could not update a grant.',
    );
  });

  test('while the lease of a lock is checked is told to the work', async () => {
    let isReady = true;
    await open({}, { isReady: () => isReady }).lock('id', async (lease) => {
      isReady = false;
      await expect(lease?.isHeld()).rejects.toThrow('Redis is not connected: could not check a grant.');
      isReady = true;
    });
  });
});

describe('the list of grants', () => {
  /** A server that gives these pages of keys. */
  const pages =
    (...all: unknown[][]) =>
    async (command: readonly string[]) => {
      sent.push({ key: '', commands: [command] });
      const [, cursor] = command;
      const next = Number(cursor) + 1;
      return [Buffer.from(next < all.length ? `${next}` : '0'), all[Number(cursor)]];
    };
  const listed = async (of: Partial<RedisConnection>, prefix = 'grants:') => {
    const ids: string[] = [];
    for await (const id of grantIdsIn(connection(of), prefix)) ids.push(id);
    return ids;
  };

  test('has those of each primary, page by page, without marks and locks', async () => {
    const first = pages(['grants:a', Buffer.from('grants:ü'), 'grants:a'], [], ['grants:login:x', 'grants:b']);
    const second = pages(['grants:lock c', 'grants:limit:y', 'grants:c', 'grants:my lock']);
    expect(await listed({ primaries: async () => [first, second] })).toEqual(['a', 'ü', 'b', 'c', 'my lock']);
    const scan = (cursor: string) => ['SCAN', cursor, 'MATCH', 'grants:*', 'COUNT', '500'];
    expect(sent.map(({ commands }) => commands[0])).toEqual(['0', '1', '2', '0'].map(scan));
  });

  test('takes prefixes as they are, also that of the client', async () => {
    const primaries = async () => [pages([String.raw`own*:a[b]?\c:id`])];
    expect(await listed({ keyPrefix: 'own*:', primaries }, String.raw`a[b]?\c:`)).toEqual(['id']);
    expect(sent[0]?.commands[0]?.[3]).toBe(String.raw`own\*:a\[b\]\?\\c:*`);
  });
});

describe('a token store', () => {
  const client = { isOpen: true, sendCommand: async (command: readonly string[]) => execute(command) };

  test.for([
    [{}, 'oauth-app-grant:'],
    [{ prefix: 'own:' }, 'own:'],
  ] as const)(
    'with the options %j has its grants, and the channel that tells of them, under %s',
    async ([options, prefix]) => {
      const subscribed: unknown[] = [];
      const node = { on: () => node, connect: async () => undefined, destroy: () => undefined };
      const duplicate = () => ({ ...node, subscribe: async (channel: string) => subscribed.push(channel) });
      const store = redisTokenStore({ ...client, duplicate } as typeof client, options);
      await store.set('id', grant);
      expect(redis.read(`${prefix}id`)).toBeDefined();
      expect(published).toEqual([[`${prefix}changed`, 'id 1']]);
      const listed: string[] = [];
      for await (const id of store.list()) listed.push(id);
      expect(listed).toEqual(['id']);
      const stop = await new Promise<(() => void) | undefined>((resolve) => {
        const stopWatching = store.watch?.(() => resolve(stopWatching));
      });
      stop?.();
      expect(subscribed).toEqual([`${prefix}changed`]);
    },
  );

  test('has no method watch over a client that cannot be duplicated', () => {
    expect(redisTokenStore(client)).not.toHaveProperty('watch');
  });
});

describe('a session store', () => {
  const client = { isOpen: true, sendCommand: async (command: readonly string[]) => execute(command) };
  const methods = { get: () => undefined, set: () => undefined, destroy: () => undefined };
  const sessions = { ...methods, client, prefix: 'sess:', scanCount: 100, serializer: JSON };
  const settings = { prefix: 'grant.', ttl: 100 };

  test('that is connect-redis over node-redis keeps grants and locks beside its sessions, and tells nobody', async () => {
    const store = sessionTokenStore(sessions, settings);
    expect(leaseMsOf(store.lock)).toBe(30_000);
    await store.set('id', grant);
    expect(leftMs('sess:grant.id')).toBe(100_000);
    expect(await store.update?.('id', grant, 1)).toBe(true);
    const lease = await store.lock?.('id', async (held) => {
      expect(redis.read('sess:grant.lock id')).toBeDefined();
      return held;
    });
    expect(lease?.leaseMs).toBe(30_000);
    expect(published).toEqual([]);
    expect([await store.get('id'), await store.add?.('id', grant)]).toEqual([grant, false]);
    await store.delete('id');
    expect(await store.get('id')).toBeUndefined();
  });

  test.for<[what: string, changes: object]>([
    ['has no client', { client: undefined }],
    ['has a client that is null', { client: null }],
    ['has a client that is no object', { client: 'redis://' }],
    ['has a client of ioredis', { client: { status: 'ready', call: async () => null } }],
    ['writes sessions in a way of its own', { serializer: { stringify: String, parse: JSON.parse } }],
  ])('that %s is left to its three methods', ([, changes]) => {
    expect(sessionTokenStore({ ...sessions, ...changes }, settings)).not.toHaveProperty('lock');
  });

  test.for(['client', 'prefix', 'scanCount', 'serializer'])('without the property %s is another one', (name) => {
    const { [name]: _, ...others }: Record<string, unknown> = sessions;
    expect(sessionTokenStore({ ...methods, ...others }, settings)).not.toHaveProperty('lock');
  });
});
