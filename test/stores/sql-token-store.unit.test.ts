import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type SqlDatabase, sqlTokenStore } from '../../src/databases/sql-token-store.js';
import { stopTime } from '../support/stop-time.js';

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
    const [first, second, third, fourth, _fifth] = values;
    switch (statement) {
      case 'get':
        return [alive(first)].flatMap((row) => (row ? [{ record: row.record }] : []));
      case 'add':
        return this.rows.has(String(first)) ? 0 : write(first, second, third, fourth);
      case 'deleteExpired':
        return remove(first, ({ endsAt }) => endsAt <= this.now);
      case 'replaceLease':
        return alive(fourth) ? 0 : write(fourth, first, second, third);
      case 'findLease':
        return alive(first)?.record === second ? [{}] : [];
      case 'release':
        return remove(first, ({ record }) => record === second);
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

describe('a lock', () => {
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

  test('is run again where it lost against another, five times at the most', async () => {
    table.remedyFor = (error) => (error === fault ? 'retry' : undefined);
    fail(4);
    expect(await store.add('id', grant)).toBe(true);
    expect(table.statements()).toHaveLength(5);
    fail();
    await expect(store.get('id')).rejects.toMatchObject({ cause: { message: 'broken' } });
    expect(table.statements()).toHaveLength(5);
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
