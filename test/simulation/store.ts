import type { Package } from './environment.js';
import type { Machine } from './machine.js';

type Stored = { readonly version: number; readonly expiresAt: number; readonly sealed: string };

/** Who has the lock of a grant. */
export interface Lease {
  readonly owner: string;
  readonly machine: Machine;
  readonly until: number;
}

/** A write that the store has taken. */
export interface StoreWrite {
  readonly id: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly op: 'set' | 'delete' | 'update' | 'failover';
  readonly machine: Machine | undefined;
}

/** The store's server: records and leases, each command atomic. */
export class StoreServer {
  readonly #records = new Map<string, string>();
  readonly #leases = new Map<string, Lease>();
  readonly #journal: { readonly time: number; readonly id: string; readonly undo: () => void }[] = [];
  readonly #now: () => number;
  readonly #onWrite: (write: StoreWrite) => void;
  /** When failovers have forgotten what of which grants: a record, or what became of a lease. */
  readonly failovers: { readonly time: number; readonly ids: ReadonlySet<string> }[] = [];
  /** When leases were given back. */
  readonly releases = new Map<Lease, number>();

  constructor(now: () => number, onWrite: (write: StoreWrite) => void) {
    this.#now = now;
    this.#onWrite = onWrite;
  }

  ids(): Iterable<string> {
    return this.#records.keys();
  }

  record(id: string): string | undefined {
    return this.#records.get(id);
  }

  /** Returns the lease that runs now. */
  lease(id: string): Lease | undefined {
    const lease = this.#leases.get(id);
    return lease && lease.until > this.#now() ? lease : undefined;
  }

  set(machine: Machine, id: string, record: string): void {
    this.#write(id, record, 'set', machine);
  }

  delete(machine: Machine, id: string, version: number | undefined): void {
    const stored = this.#stored(id);
    if (!stored || (version !== undefined && stored.version !== version)) return;
    this.#write(id, undefined, 'delete', machine);
  }

  update(machine: Machine, id: string, record: string, version: number): boolean {
    if (this.#stored(id)?.version !== version) return false;
    this.#write(id, record, 'update', machine);
    return true;
  }

  take(machine: Machine, id: string, owner: string, leaseMs: number): boolean {
    if (this.lease(id)) return false;
    this.#setLease(id, { owner, machine, until: this.#now() + leaseMs });
    return true;
  }

  release(id: string, owner: string): void {
    const lease = this.#leases.get(id);
    if (lease?.owner !== owner) return;
    this.#setLease(id, undefined);
    this.releases.set(lease, this.#now());
  }

  /** Forgets what was written in the last `ms`, as a replica does that has not seen it. */
  failover(ms: number): void {
    const since = this.#now() - ms;
    const ids = new Set<string>();
    for (let last = this.#journal.at(-1); last && last.time >= since; last = this.#journal.at(-1)) {
      this.#journal.pop();
      ids.add(last.id);
      last.undo();
    }
    this.failovers.push({ time: this.#now(), ids });
  }

  #stored(id: string): Stored | undefined {
    const text = this.#records.get(id);
    return text === undefined ? undefined : (JSON.parse(text) as Stored);
  }

  #write(id: string, after: string | undefined, op: StoreWrite['op'], machine: Machine | undefined): void {
    const before = this.#records.get(id);
    put(this.#records, id, after);
    this.#journal.push({ time: this.#now(), id, undo: () => this.#undo(id, before) });
    this.#onWrite({ id, before, after, op, machine });
  }

  #undo(id: string, to: string | undefined): void {
    const before = this.#records.get(id);
    put(this.#records, id, to);
    this.#onWrite({ id, before, after: to, op: 'failover', machine: undefined });
  }

  #setLease(id: string, lease: Lease | undefined): void {
    const before = this.#leases.get(id);
    put(this.#leases, id, lease);
    this.#journal.push({ time: this.#now(), id, undo: () => put(this.#leases, id, before) });
  }
}

function put<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/** The commands of the store's server, as a client of one process sends them. */
export interface StoreConnection {
  command<T>(op: string, id: string, effect: () => T): Promise<T>;
  /** A command has taken too long. */
  late(op: string, id: string): void;
}

/** Milliseconds. A command that takes longer counts as failed, though it may still take effect. */
const COMMAND_MS = 5_000;
export const LEASE_MS = 30_000;
const LOCK_MARGIN_MS = 5_000;
const RELEASE_MS = 1_000;

/** The option `tokenStore` of one process: all five methods, over the store's server, as stores of this kind are written. */
export function storeClient(
  machine: Machine,
  server: StoreServer,
  connection: StoreConnection,
  passportOAuthApp: Package,
) {
  const within = <T>(promise: Promise<T>, ms: number, onLate?: () => void): Promise<T> =>
    new Promise((resolve, reject) => {
      const timer = machine.setTimer(() => {
        onLate?.();
        reject(new Error('the store took too long'));
      }, ms);
      promise.finally(() => machine.clearTimer(timer)).then(resolve, reject);
    });
  const command = <T>(op: string, id: string, effect: () => T) =>
    within(connection.command(op, id, effect), COMMAND_MS, () => connection.late(op, id));
  const lines = new Map<string, Promise<unknown>>();

  const giveBack = async (id: string, owner: string): Promise<void> => {
    const release = () => command('release', id, () => server.release(id, owner));
    // Once more where the connection broke: a lease that is not given back keeps others waiting.
    await within(release().catch(release), RELEASE_MS).catch(() => undefined);
  };

  const takeOnce = async (id: string, owner: string): Promise<boolean> => {
    const [monotonic, wall] = [machine.monotonic(), machine.wall()];
    try {
      if (!(await command('take', id, () => server.take(machine, id, owner, LEASE_MS)))) return false;
    } catch (error) {
      void giveBack(id, owner);
      throw error;
    }
    const askedMs = Math.max(machine.monotonic() - monotonic, Math.abs(machine.wall() - wall));
    if (askedMs < LEASE_MS / 2) return true;
    await giveBack(id, owner);
    return false;
  };

  /** Returns the owner of the lease: a new one for each try, so that a late release of an earlier try ends nothing. */
  const take = async (id: string, caller: string, deadline: number): Promise<string> => {
    let pauseMs = 20;
    for (let tries = 1; ; tries += 1) {
      const owner = `${caller}.${tries}`;
      if (await takeOnce(id, owner)) return owner;
      if (machine.monotonic() >= deadline) throw lateFor(passportOAuthApp);
      const ms = pauseMs * (1 + machine.random.next());
      await new Promise<void>((resolve) => machine.setTimer(resolve, ms));
      pauseMs = Math.min(pauseMs * 1.5, 200);
    }
  };

  return {
    async get(id: string): Promise<Stored | undefined> {
      const text = await command('get', id, () => server.record(id));
      return text === undefined ? undefined : (JSON.parse(text) as Stored);
    },
    set(id: string, grant: Stored): Promise<void> {
      const record = JSON.stringify(grant);
      return command('set', id, () => server.set(machine, id, record));
    },
    delete(id: string, version?: number): Promise<void> {
      return command('delete', id, () => server.delete(machine, id, version));
    },
    update(id: string, grant: Stored, version: number): Promise<boolean> {
      const record = JSON.stringify(grant);
      return command('update', id, () => server.update(machine, id, record, version));
    },
    async lock<T>(id: string, work: () => Promise<T>): Promise<T> {
      const caller = machine.random.bytes(8).toString('hex');
      const deadline = machine.monotonic() + LEASE_MS + LOCK_MARGIN_MS;
      // One of each process tries at a time.
      const before = lines.get(id) ?? Promise.resolve();
      const taken = before.then(() => take(id, caller, deadline));
      const turn = taken.catch(() => undefined);
      lines.set(id, turn);
      const owner = await taken.finally(() => {
        if (lines.get(id) === turn) lines.delete(id);
      });
      try {
        return await work();
      } finally {
        await giveBack(id, owner);
      }
    },
  };
}

export type StoreClient = ReturnType<typeof storeClient>;

function lateFor({ TokenStoreError }: Package): Error {
  return new TokenStoreError('The lock of a grant could not be had in time: somebody else keeps it.', {
    code: 'ERR_TOKEN_STORE_LOCKED',
  });
}
