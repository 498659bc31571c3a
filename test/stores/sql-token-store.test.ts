import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { TokenStoreError } from '../../src/errors.js';
import {
  once,
  PAGE_ROWS,
  type SqlDatabase,
  SWEEP_ROWS,
  sqlTokenStore,
  tableName,
} from '../../src/sql/sql-token-store.js';
import { stopTime } from '../support/stop-time.js';
import { timersOf } from './fixture.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed' };
const SETTINGS = { ttl: 3_600, lease: 30 };
const forever = (): Promise<never> => new Promise(() => undefined);

interface Row {
  readonly id: string;
  readonly version: number;
  readonly record: string;
  readonly endsAt: number;
}

/** A database whose statements are called as what they do. */
class Table {
  readonly rows = new Map<string, Row>();
  /** The statements that were run, with their values. */
  readonly ran: (readonly (string | number)[])[] = [];
  now = 0;
  /** Runs before each statement. */
  before: (statement: string) => unknown = () => undefined;
  remedyFor: SqlDatabase['remedyFor'] = () => undefined;

  readonly database: SqlDatabase = {
    product: 'SQL',
    createTable: ['create table', 'create index'],
    statements: {
      ...{ get: 'get', set: 'set', add: 'add', deleteExpired: 'deleteExpired', update: 'update', delete: 'delete' },
      ...{ deleteVersion: 'deleteVersion', insertLease: 'add', replaceLease: 'replaceLease', findLease: 'findLease' },
      ...{ release: 'release', sweep: 'sweep', list: 'list' },
    },
    run: async (statement, values) => {
      this.ran.push([statement, ...values]);
      await this.before(statement);
      const result = this.#run(statement, values);
      return typeof result === 'number' ? { rows: [], changed: result } : { rows: result, changed: 0 };
    },
    remedyFor: (error) => this.remedyFor(error),
  };

  #run(statement: string, values: readonly (string | number)[]): number | readonly object[] {
    const alive = (id: unknown): Row | undefined => {
      const row = this.rows.get(String(id));
      return row && row.endsAt > this.now ? row : undefined;
    };
    const write = (id: unknown, version: unknown, record: unknown, ttl: unknown): number => {
      const row = { version: Number(version), record: String(record), endsAt: this.now + Number(ttl) };
      this.rows.set(String(id), { id: String(id), ...row });
      return 1;
    };
    const remove = (id: unknown, isIt: (row: Row) => boolean): number => {
      const row = this.rows.get(String(id));
      return row && isIt(row) && this.rows.delete(row.id) ? 1 : 0;
    };
    const [first, second, third, fourth, fifth] = values;
    switch (statement) {
      case 'get':
        return [alive(first)].flatMap((row) => (row ? [{ record: row.record }] : []));
      case 'set':
        return write(first, second, third, fourth);
      case 'add':
        return this.rows.has(String(first)) ? 0 : write(first, second, third, fourth);
      case 'update':
        return alive(fourth)?.version === fifth ? write(fourth, first, second, third) : 0;
      case 'delete':
        return remove(first, () => true);
      case 'deleteVersion':
        return remove(first, ({ version }) => version === second);
      case 'deleteExpired':
        return remove(first, ({ endsAt }) => endsAt <= this.now);
      case 'replaceLease':
        return alive(fourth) ? 0 : write(fourth, first, second, third);
      case 'findLease':
        return alive(first)?.record === second ? [{}] : [];
      case 'release':
        return remove(first, ({ record }) => record === second);
      case 'sweep':
        return [...this.rows.values()]
          .filter(({ endsAt }) => endsAt <= this.now)
          .slice(0, SWEEP_ROWS)
          .filter(({ id }) => this.rows.delete(id)).length;
      case 'list':
        return [...this.rows.values()]
          .filter(({ id, endsAt }) => id >= String(first) && id < String(second) && endsAt > this.now)
          .sort((one, other) => (one.id < other.id ? -1 : 1))
          .slice(0, PAGE_ROWS);
      default:
        return 0;
    }
  }

  open(settings = SETTINGS) {
    return sqlTokenStore(this.database, settings);
  }

  /** The statements that have run since, without their values. */
  statements(): unknown[] {
    return this.ran.splice(0).map(([statement]) => statement);
  }
}

let table: Table;
let store: ReturnType<typeof sqlTokenStore>;

beforeEach(() => {
  table = new Table();
  store = table.open();
});
afterEach(() => vi.useRealTimers());

describe('rows', () => {
  test('are read, replaced and deleted as their versions allow', async () => {
    expect(await store.get('id')).toBeUndefined();
    expect(await store.add('id', grant)).toBe(true);
    expect(await store.add('id', grant)).toBe(false);
    expect(await store.update('id', grant, 2)).toBe(false);
    expect(await store.update('id', { ...grant, version: 2 }, 1)).toBe(true);
    await store.delete('id', 1);
    expect(await store.get('id')).toEqual({ ...grant, version: 2 });
    await store.delete('id', 2);
    expect(await store.get('id')).toBeUndefined();
    await store.set('id', { ...grant, version: 0 });
    await store.delete('id', 0);
    expect(await store.get('id')).toBeUndefined();
    await store.set('id', grant);
    await store.delete('id');
    expect(await store.get('id')).toBeUndefined();
  });

  test.for([
    ['oauth-app+id', 3_600_000],
    ['login:id', 720_000],
  ] as const)('under %s end %d ms after they were last written, and can be added then', async ([id, ms]) => {
    for (const write of [() => store.set(id, grant), () => store.update(id, grant, 1)]) {
      await write();
      expect(table.rows.get(id)?.endsAt).toBe(table.now + ms);
      table.now += 1_000;
    }
    table.now += ms;
    expect([await store.get(id), await store.update(id, grant, 1)]).toEqual([undefined, false]);
    expect(await store.add(id, grant)).toBe(true);
    expect(table.rows.get(id)?.endsAt).toBe(table.now + ms);
  });

  test('cost one statement where nothing has expired', async () => {
    await store.set('id', grant);
    table.statements();
    await store.add('new', grant);
    await store.update('id', grant, 1);
    await store.delete('id');
    expect(table.statements()).toEqual(['add', 'update', 'delete']);
  });

  test.for([undefined, null, 'record', {}, { record: '{' }, { record: null }])(
    'that are %j count as none',
    async (row) => {
      const odd = { ...table.database, run: async () => ({ rows: [row], changed: 0 }) };
      expect(await sqlTokenStore(odd, SETTINGS).get('id')).toBeUndefined();
    },
  );

  test('may come as bytes', async () => {
    const rows = [{ record: Buffer.from(JSON.stringify(grant)) }];
    const bytes = { ...table.database, run: async () => ({ rows, changed: 0 }) };
    expect(await sqlTokenStore(bytes, SETTINGS).get('id')).toEqual(grant);
  });
});

describe('a lock', () => {
  test('is a row that its release deletes, as long as its lease', async () => {
    const told = await table.open({ ttl: 1, lease: 30.0001 }).lock('id', async (lease) => {
      expect([...table.rows.values()]).toMatchObject([{ id: 'lock id', version: 30_001, endsAt: 30_001 }]);
      return lease;
    });
    expect(told?.leaseMs).toBe(30_001);
    expect(table.rows.size).toBe(0);
    expect(table.statements()).toEqual(['add', 'release']);
  });

  test('is held until its lease has ended, by its owner alone, and replaced then', async () => {
    const held: unknown[] = [];
    await store.lock('id', async (lease) => {
      held.push(await lease?.isHeld());
      table.now += 30_000;
      held.push(await lease?.isHeld());
      table.statements();
      await table.open().lock('id', async (others) => {
        expect(table.statements()).toEqual(['add', 'replaceLease']);
        held.push(await others?.isHeld(), await lease?.isHeld());
        expect(table.rows.get('lock id')).toMatchObject({ version: 30_000, endsAt: 60_000 });
      });
    });
    expect(held).toEqual([true, false, true, false]);
  });

  test('is asked for again while another process has it', async () => {
    stopTime();
    const order: string[] = [];
    const [first, second] = [
      store.lock('id', () => new Promise<void>((end) => setTimeout(end, 1_000)).then(() => order.push('first'))),
      table.open().lock('id', async () => order.push('second')),
    ];
    await vi.advanceTimersByTimeAsync(1_500);
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
  });

  test.for(['add', 'replaceLease'])(
    'that waits in the database until its caller has gone is released: %s',
    async (late) => {
      stopTime();
      // An ended one of another process, which is replaced.
      if (late === 'replaceLease') table.rows.set('lock id', { id: 'lock id', version: 1, record: 'other', endsAt: 0 });
      let goOn = (): void => undefined;
      const stall = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      // What follows on another connection sees nothing of it.
      table.before = (statement) => statement === late && stall;
      const locking = store.lock('id', async () => undefined).catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await locking).toMatchObject({ message: 'SQL did not lock a grant within 5000 ms.' });
      goOn();
      await vi.advanceTimersByTimeAsync(0);
      expect(table.rows.has('lock id')).toBe(false);
      await store.lock('id', async () => undefined);
    },
  );
});

describe('the list', () => {
  const listed = async () => {
    const ids: string[] = [];
    for await (const id of store.list()) ids.push(id);
    return ids;
  };

  test.for([
    [0, 1],
    [999, 1],
    [1_000, 2],
    [1_001, 2],
    [2_500, 3],
  ] as const)('of %d grants is read in %d pages', async ([count, pages]) => {
    const ids = Array.from({ length: count }, (_, index) => `grant${String(index).padStart(5, '0')}`);
    for (const id of ids) table.rows.set(id, { id, version: 1, record: '', endsAt: 1 });
    expect(await listed()).toEqual(ids);
    const starts = Array.from({ length: pages }, (_, page) => (page === 0 ? '' : `${ids[page * 1_000 - 1]} `));
    expect(table.ran).toEqual(starts.map((from) => ['list', from, '\x7f']));
  });

  test('takes ids that come as bytes', async () => {
    const rows = [{ id: Buffer.from('id') }];
    store = sqlTokenStore({ ...table.database, run: async () => ({ rows, changed: 0 }) }, SETTINGS);
    expect(await listed()).toEqual(['id']);
  });
});

describe('rows that have expired', () => {
  const expire = (count: number) => {
    for (let index = 0; index < count; index += 1)
      table.rows.set(`old${index}`, { id: `old${index}`, version: 1, record: '', endsAt: -1 });
  };
  const sweeps = () =>
    table.ran.splice(0).filter(([statement, ...values]) => statement === 'sweep' && values.length === 0).length;

  test.for([
    ['set', () => store.set('id', grant)],
    ['update', () => store.update('id', grant, 1)],
  ] as const)('are deleted in passing by %s, once a minute', async ([, write]) => {
    stopTime();
    for (const [ms, count] of [
      [0, 1],
      [59_999, 0],
      [1, 1],
      [60_000, 1],
    ] as const) {
      expire(5);
      await vi.advanceTimersByTimeAsync(ms);
      await write();
      await vi.advanceTimersByTimeAsync(0);
      expect(sweeps()).toBe(count);
    }
    expect(table.rows.size).toBeLessThan(2);
  });

  test.for([
    [999, 1],
    [1_000, 2],
    [2_500, 3],
  ] as const)('of which there are %d are deleted in %d steps, with pauses for others', async ([count, steps]) => {
    stopTime();
    expire(count);
    const timers = await timersOf(async () => {
      await store.set('id', grant);
      for (let step = 1; step < steps; step += 1) {
        await vi.advanceTimersByTimeAsync(49);
        expect(table.rows.size).toBe(1 + count - step * 1_000);
        await vi.advanceTimersByTimeAsync(1);
      }
      await vi.advanceTimersByTimeAsync(50_000);
    });
    expect([table.rows.size, sweeps()]).toEqual([1, steps]);
    const pauses = timers.filter(({ ms }) => ms === 50);
    expect(pauses.map(({ isKeeping }) => isKeeping)).toEqual(Array(steps - 1).fill(false));
  });

  test('stay until the next time where that fails', async () => {
    stopTime();
    expire(1);
    table.before = (statement) => statement === 'sweep' && Promise.reject(new Error('broken'));
    await store.set('id', grant);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(sweeps()).toBe(1);
    table.before = () => undefined;
    await vi.advanceTimersByTimeAsync(1);
    await store.set('id', grant);
    await vi.advanceTimersByTimeAsync(0);
    expect([...table.rows.keys()]).toEqual(['id']);
  });
});

describe('a statement that fails', () => {
  const fault = new Error('broken');
  const fail = (times = Number.POSITIVE_INFINITY) => {
    let left = times;
    table.before = (statement) => {
      if (!statement.startsWith('create') && left-- > 0) throw fault;
    };
  };

  test('tells what was not done', async () => {
    fail();
    const list = () => store.list()[Symbol.asyncIterator]().next();
    for (const [verb, call] of [
      ['read', () => store.get('id')],
      ['save', () => store.set('id', grant)],
      ['save', () => store.add('id', grant)],
      ['update', () => store.update('id', grant, 1)],
      ['delete', () => store.delete('id')],
      ['delete', () => store.delete('id', 1)],
      ['lock', () => store.lock('id', async () => undefined)],
      ['list', list],
    ] as const)
      await expect(call()).rejects.toMatchObject({
        ...{ name: 'TokenStoreError', message: `SQL could not ${verb} a grant.`, cause: { message: 'broken' } },
      });
    table.before = () => undefined;
    table.rows.set('lock held', { id: 'lock held', version: 1, record: 'other', endsAt: 0 });
    table.before = (statement) => statement === 'replaceLease' && Promise.reject(fault);
    await expect(store.lock('held', async () => undefined)).rejects.toThrow('SQL could not lock a grant.');
    table.before = (statement) => statement === 'deleteExpired' && Promise.reject(fault);
    await expect(store.add('lock held', grant)).rejects.toThrow('SQL could not delete a grant.');
    table.before = (statement) => statement === 'findLease' && Promise.reject(fault);
    await store.lock('id', async (lease) => expect(lease?.isHeld()).rejects.toThrow('SQL could not check a grant.'));
  });

  test('with an error of this package passes it on', async () => {
    const own = new TokenStoreError('Read-only');
    table.before = () => Promise.reject(own);
    await expect(store.get('id')).rejects.toBe(own);
  });

  test('is run again where it lost against another, five times at the most', async () => {
    table.remedyFor = (error) => (error === fault ? 'retry' : undefined);
    fail(4);
    expect(await store.add('id', grant)).toBe(true);
    expect(table.statements()).toHaveLength(5);
    fail();
    await expect(store.get('id')).rejects.toMatchObject({ cause: { message: 'broken' } });
    expect(table.statements()).toHaveLength(5);
  });

  test('is run again once the table is there', async () => {
    table.remedyFor = () => 'create';
    fail(1);
    await store.set('id', grant);
    expect(table.ran.slice(0, 4)).toEqual([
      ['set', 'id', 1, JSON.stringify(grant), 3_600_000],
      ['create table'],
      ['create index'],
      ['set', 'id', 1, JSON.stringify(grant), 3_600_000],
    ]);
  });

  test('does not mind that another process has just created the table, but any other error', async () => {
    const [missing, made, refused] = [new Error('missing'), new Error('made'), new Error('refused')];
    table.remedyFor = (error) => (error === refused ? undefined : 'create');
    let isThere = false;
    table.before = (statement) => {
      if (statement === 'create table') {
        isThere = true;
        throw made;
      }
      if (!isThere) throw missing;
    };
    expect(await store.get('id')).toBeUndefined();
    expect(table.statements()).toEqual(['get', 'create table', 'create index', 'get']);
    table.before = (statement) => {
      throw statement === 'create index' ? refused : missing;
    };
    await expect(store.get('id')).rejects.toMatchObject({ cause: { message: 'refused' } });
    expect(table.statements()).toEqual(['get', 'create table', 'create index']);
  });

  test.for([
    [0, [0, 10, 20, 30]],
    [0.5, [0, 15, 30, 45]],
  ] as const)('waits for a locked database as often as need be (%d)', async ([random, expected]) => {
    stopTime();
    const chance = vi.spyOn(Math, 'random').mockReturnValue(random);
    onTestFinished(() => chance.mockRestore());
    const [times, start] = [[] as number[], performance.now()];
    table.remedyFor = () => 'wait';
    table.before = () => {
      times.push(performance.now() - start);
      if (times.length < 100) throw fault;
    };
    const reading = store.get('id');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await reading).toBeUndefined();
    expect([times.length, times.slice(0, 4)]).toEqual([100, expected]);
  });

  test.for<[what: string, remedy: 'wait' | 'retry', lockedHint: string | undefined, message: string]>([
    ['that waits', 'wait', 'Unlock it.', 'SQL did not read a grant within 5000 ms. Unlock it.'],
    ['that waits, of which nothing is known', 'wait', undefined, 'SQL did not read a grant within 5000 ms.'],
    ['that hangs', 'retry', 'Unlock it.', 'SQL did not read a grant within 5000 ms.'],
  ])('%s is given up after five seconds', async ([, remedy, lockedHint, message]) => {
    stopTime();
    table.remedyFor = () => remedy;
    table.before = remedy === 'wait' ? () => Promise.reject(fault) : forever;
    const database = lockedHint === undefined ? table.database : { ...table.database, lockedHint };
    const reading = sqlTokenStore(database, SETTINGS).get('id');
    const failed = expect(reading).rejects.toMatchObject({ name: 'TokenStoreError', message });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(await Promise.race([reading.catch(() => 'failed'), 'open'])).toBe('open');
    await vi.advanceTimersByTimeAsync(1);
    await failed;
    // Nobody waits for it any more.
    const { length } = table.ran;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([table.ran.length, vi.getTimerCount()]).toEqual([length, 0]);
  });

  test.for(['retry', 'create', 'wait'] as const)(
    'once its caller has gone on is left at that, whatever helps: %s',
    async (remedy) => {
      stopTime();
      table.remedyFor = () => remedy;
      table.before = () => new Promise((_resolve, reject) => setTimeout(reject, 5_001, fault));
      const reading = expect(store.get('id')).rejects.toThrow('within 5000 ms');
      await vi.advanceTimersByTimeAsync(60_000);
      await reading;
      expect(table.statements()).toEqual(['get']);
    },
  );
});

describe('what is checked once', () => {
  test('is checked again only where that has failed, and once for calls that overlap', async () => {
    const outcomes = [new Error('first'), new Error('second'), undefined];
    const check = vi.fn(async () => {
      const outcome = outcomes.shift();
      if (outcome) throw outcome;
    });
    const checked = once(check);
    await Promise.all([checked(), checked()].map((each) => expect(each).rejects.toThrow('first')));
    await expect(checked()).rejects.toThrow('second');
    await Promise.all([checked(), checked()]);
    await checked();
    expect(check).toHaveBeenCalledTimes(3);
  });
});

describe('the name of a table', () => {
  const longest = 'a'.repeat(52);
  test.for<[given: string | undefined, parts: readonly string[]]>([
    [undefined, ['passport_oauth_app_grants']],
    ['Grants_2', ['Grants_2']],
    ['_app.grants', ['_app', 'grants']],
    [`${longest}.${longest}`, [longest, longest]],
  ])('%s has the parts %j', ([given, parts]) => {
    expect(tableName('table', given)).toEqual(parts);
  });

  test.for<unknown>([null, 7, '', '.', 'a.', '.a', 'a.b.c', 'a b', 'a-b', '1a', 'ä', 'a"', `${longest}a`, 'a\n'])(
    'is not %j',
    (given) => {
      expect(() => tableName('table', given)).toThrow(
        'table: expected a name, or a schema and a name with a dot between, each of letters, digits and underscores, 52 at most',
      );
    },
  );
});
