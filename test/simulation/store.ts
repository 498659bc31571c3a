import { EPOCH, type Machine } from './machine.js';
import type { RedisServer } from './redis-server.js';

/** What a store's server has under a key, and until when, in milliseconds of simulated time. */
export interface Row {
  readonly value: string;
  readonly until: number;
}

/** Who has the lock of a grant. */
export interface Lease {
  readonly machine: Machine;
  /** When it began, and when it ends by itself. */
  readonly since: number;
  readonly until: number;
}

/** A write that the store has taken. */
export interface StoreWrite {
  readonly id: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly op: string;
  readonly machine: Machine | undefined;
}

/** A change of one key, and what it has replaced. */
interface Change {
  readonly time: number;
  readonly key: string;
  readonly before: Row | undefined;
  readonly lease: Lease | undefined;
}

/** Before the keys of the package's stores. */
export const KEY_PREFIX = 'oauth-app-grant:';
/** After that, before the keys of locks. */
const LOCK_PREFIX = 'lock ';

/**
 * Watches a store's server from the outside: what each command has changed, who has which lease, and what failovers undo. It
 * takes no part in what the commands do.
 */
export class StoreServer {
  readonly #keyspace: RedisServer;
  readonly #rows = new Map<string, Row>();
  readonly #leases = new Map<string, Lease>();
  readonly #journal: Change[] = [];
  readonly #now: () => number;
  readonly #onWrite: (write: StoreWrite) => void;
  /** When failovers have forgotten what of which grants: a record, or what became of a lease. */
  readonly failovers: { readonly time: number; readonly ids: ReadonlySet<string> }[] = [];
  /** Every lease that a process has taken, in order. */
  readonly takenLeases: { readonly id: string; readonly machine: Machine; readonly since: number }[] = [];
  /** When leases were given back. */
  readonly releases = new Map<Lease, number>();
  /** How far the replica lags behind that a read is answered by; 0 for the server itself. */
  lagMs = 0;
  /** Which process has read an older record than the last one, and when. */
  readonly staleReads: { readonly time: number; readonly id: string; readonly machine: Machine }[] = [];
  /** When leases were dropped. */
  readonly droppedLeases: { readonly time: number; readonly id: string }[] = [];
  /** When records were dropped. */
  readonly evictedRecords: { readonly time: number; readonly id: string }[] = [];
  #lastKey = '';

  constructor(keyspace: RedisServer, now: () => number, onWrite: (write: StoreWrite) => void) {
    this.#keyspace = keyspace;
    this.#now = now;
    this.#onWrite = onWrite;
  }

  /** Returns the text of a grant's record. */
  record(id: string): string | undefined {
    const row = this.#rows.get(KEY_PREFIX + id);
    return row && row.until > this.#now() ? row.value : undefined;
  }

  /** Returns the lease that runs now. */
  lease(id: string): Lease | undefined {
    const lease = this.#leases.get(id);
    return lease && lease.until > this.#now() ? lease : undefined;
  }

  /** Returns the lease that the process has of a grant, by the application's id of the grant. */
  leaseOf(machine: Machine, grantId: string): Lease | undefined {
    for (const [id, lease] of this.#leases)
      if (lease.machine === machine && id.endsWith(`+${grantId}`) && lease.until > this.#now()) return lease;
    return undefined;
  }

  /** Performs a command of a process, which may change what is under `key`. */
  perform<T>(machine: Machine, op: string, key: string, command: () => T): T {
    this.#lastKey = key;
    if (op === 'get' && this.lagMs > 0) return this.#performInPast(machine, key, command);
    const answer = command();
    const row = this.#keyspace.read(key);
    if (!isSame(row, this.#rows.get(key))) this.#changed(key, row, op, machine);
    return answer;
  }

  /** Drops the lock or the record of the grant that was touched last. */
  evict(what: 'lease' | 'record'): void {
    const id = idOf(this.#lastKey);
    const key = KEY_PREFIX + (what === 'lease' ? LOCK_PREFIX : '') + id;
    const change = { time: this.#now(), key, before: this.#rows.get(key), lease: this.#leases.get(id) };
    if (!change.before) return;
    this.#journal.push(change);
    (what === 'lease' ? this.droppedLeases : this.evictedRecords).push({ time: this.#now(), id });
    this.#restore(key, undefined, undefined, 'eviction');
  }

  /** Forgets what was written in the last `ms`, as a replica does that has not seen it. */
  failover(ms: number): void {
    const since = this.#now() - ms;
    const ids = new Set<string>();
    for (let last = this.#journal.at(-1); last && last.time >= since; last = this.#journal.at(-1)) {
      this.#journal.pop();
      ids.add(idOf(last.key));
      this.#restore(last.key, last.before, last.lease, 'failover');
    }
    this.failovers.push({ time: this.#now(), ids });
  }

  #changed(key: string, row: Row | undefined, op: string, machine: Machine): void {
    const before = this.#rows.get(key);
    const id = idOf(key);
    const lease = this.#leases.get(id);
    put(this.#rows, key, row);
    this.#journal.push({ time: this.#now(), key, before, lease });
    if (!isLock(key)) this.#onWrite({ id, before: before?.value, after: row?.value, op, machine });
    else if (row) {
      this.#leases.set(id, { machine, since: this.#now(), until: endOf(row) });
      this.takenLeases.push({ id, machine, since: this.#now() });
    } else {
      this.#leases.delete(id);
      // One that has ended by itself was not given back.
      if (lease && lease.until > this.#now()) this.releases.set(lease, this.#now());
    }
  }

  #restore(key: string, row: Row | undefined, lease: Lease | undefined, op: 'failover' | 'eviction'): void {
    const id = idOf(key);
    const before = this.#rows.get(key);
    this.#keyspace.write(key, row);
    put(this.#rows, key, row);
    if (isLock(key)) put(this.#leases, id, lease);
    else this.#onWrite({ id, before: before?.value, after: row?.value, op, machine: undefined });
  }

  /** Lets a read see what the key had before. */
  #performInPast<T>(machine: Machine, key: string, command: () => T): T {
    const since = this.#now() - this.lagMs;
    const now = this.#rows.get(key);
    const next = this.#journal.find((change) => change.key === key && change.time > since);
    if (!next) return command();
    this.staleReads.push({ time: this.#now(), id: idOf(key), machine });
    this.#keyspace.write(key, next.before);
    const answer = command();
    this.#keyspace.write(key, now);
    return answer;
  }
}

function put<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

function isLock(key: string): boolean {
  return key.startsWith(KEY_PREFIX + LOCK_PREFIX);
}

function idOf(key: string): string {
  return key.slice(isLock(key) ? KEY_PREFIX.length + LOCK_PREFIX.length : KEY_PREFIX.length);
}

/** Returns when a lease ends: as its record says, where the key outlives it. */
function endOf({ value, until }: Row): number {
  const { endsAt } = JSON.parse(value) as { readonly endsAt?: number };
  return endsAt === undefined ? until : endsAt - EPOCH;
}

function isSame(one: Row | undefined, other: Row | undefined): boolean {
  return one?.value === other?.value && one?.until === other?.until;
}
