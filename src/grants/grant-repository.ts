import { OAuthAppError, TokenStoreError } from '../errors.js';
import { safeCause } from '../safe-cause.js';
import type { Grant } from './grant.js';
import type { GrantCache } from './grant-cache.js';
import type { GrantRecords } from './grant-record.js';
import { KeyedQueue } from './keyed-queue.js';
import type { TokenStore } from './token-store.js';
import { within } from './within.js';

/** What a repository is made of. */
export interface GrantRepositoryOptions {
  readonly store: TokenStore;
  readonly records: GrantRecords;
  readonly cache: GrantCache | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Called for a record that is there and cannot be read; it is kept. */
  readonly onUnreadable: (id: string) => void;
}

/** How long a store may take to answer, in milliseconds. A save may take less: there is memory to fall back on. */
const READ_LIMIT_MS = 5_000;
const SAVE_LIMIT_MS = 2_000;
/** How long to wait for a store's lock; longer than the lease of the stores of this package. */
const LOCK_LIMIT_MS = 45_000;

/**
 * The grants of one token store: decoded, cached, and written in order.
 *
 * Writes of one grant run one after the other in this process, and the cache follows them within the same task: a
 * logout is never overtaken by the save that it cancels, however slow that one is.
 *
 * All methods take ids of the store, and reject with TokenStoreError if the store fails.
 */
export class GrantRepository {
  readonly #options: GrantRepositoryOptions;
  readonly #writes = new KeyedQueue();
  readonly #reads = new Map<string, Promise<Grant | undefined>>();

  constructor(options: GrantRepositoryOptions) {
    this.#options = options;
  }

  /** Number of writes and reads under way, by id. */
  get pending(): number {
    return this.#writes.size + this.#reads.size;
  }

  /** The grant as far as this process knows it without asking. */
  cached(id: string): Grant | undefined {
    return this.#options.cache?.get(id, this.#options.clock());
  }

  /** The grant as the store has it. Requests that ask at once share one look. */
  read(id: string): Promise<Grant | undefined> {
    return this.#reads.get(id) ?? this.#startRead(id);
  }

  /** The grant as the store has it now, never one that a look under way may have seen earlier. */
  readAnew(id: string): Promise<Grant | undefined> {
    return this.#startRead(id);
  }

  /** Keeps the grant of a login, in place of whatever was there. */
  async create(id: string, grant: Grant): Promise<void> {
    const record = await this.#options.records.write(id, grant);
    await this.#write(id, SAVE_LIMIT_MS, async () => {
      await this.#options.store.set(id, record);
      this.#seen(id, grant);
    });
  }

  /** Keeps a refreshed grant if the store still has one of the given versions; false if it has another one or none. */
  async replace(id: string, grant: Grant, versions: readonly number[]): Promise<boolean> {
    const record = await this.#options.records.write(id, grant);
    return await this.#write(id, SAVE_LIMIT_MS, async () => {
      const saved = await this.#compareAndSet(id, record, versions);
      if (saved) this.#seen(id, grant);
      return saved;
    });
  }

  /** Removes the grant. */
  async remove(id: string): Promise<void> {
    this.#forget(id);
    await this.#write(id, READ_LIMIT_MS, () => this.#delete(id));
  }

  /** Removes the grant if the store has it with the very same tokens; false if it has another one. */
  async removeRefused(id: string, refused: Grant): Promise<boolean> {
    return await this.#write(id, READ_LIMIT_MS, async () => {
      const stored = await this.#load(id);
      if (stored && stored.refreshToken !== refused.refreshToken) return false;
      if (stored) await this.#delete(id);
      this.#forget(id);
      return true;
    });
  }

  /** Runs `work` under the store's lock for the id, or right away if the store has no locks. */
  async locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    const { store } = this.#options;
    if (!store.lock) return await work();
    let began: (() => void) | undefined;
    const start = new Promise<void>((resolve) => {
      began = resolve;
    });
    let abandoned = false;
    const done = this.#attempt(() =>
      // Called as a method, for stores that are classes.
      (store as Required<Pick<TokenStore, 'lock'>>).lock(id, async () => {
        if (abandoned) throw late('lock');
        began?.();
        return await work();
      }),
    );
    await within(Promise.race([start, done.then(nothing)]), LOCK_LIMIT_MS, () => {
      abandoned = true;
      return late('lock');
    });
    return await done;
  }

  /** Resolves when all writes that are under way have settled. */
  async drain(): Promise<void> {
    await this.#writes.drain();
  }

  #startRead(id: string): Promise<Grant | undefined> {
    const reading = within(this.#load(id), READ_LIMIT_MS, () => late('get'));
    const settled = (grant?: Grant) => {
      // A write that came in between knows better, and has taken this look out of the map.
      if (this.#reads.get(id) !== reading) return;
      this.#reads.delete(id);
      if (grant) this.#options.cache?.set(id, grant, this.#options.clock());
    };
    this.#reads.set(id, reading);
    reading.then(settled, () => settled());
    return reading;
  }

  async #load(id: string): Promise<Grant | undefined> {
    const { store, records, onUnreadable } = this.#options;
    const record = await this.#attempt(() => store.get(id));
    if (record === undefined || record === null) return undefined;
    const grant = await records.read(id, record);
    if (!grant) onUnreadable(id);
    return grant;
  }

  async #compareAndSet(
    id: string,
    record: Parameters<TokenStore['set']>[1],
    versions: readonly number[],
  ): Promise<boolean> {
    const { store } = this.#options;
    for (const version of store.update ? versions : []) {
      if (await store.update?.(id, record, version)) return true;
    }
    const current = await store.get(id);
    // A write that was given up as late, and arrived after all, was this one.
    if (current?.version === record.version) return true;
    if (store.update || current === undefined || !versions.includes(current.version)) return false;
    await store.set(id, record);
    return true;
  }

  async #delete(id: string): Promise<void> {
    await this.#options.store.delete(id);
    this.#forget(id);
  }

  #write<T>(id: string, limitMs: number, task: () => Promise<T>): Promise<T> {
    const written = this.#writes.run(id, () => this.#attempt(task));
    return within(written, limitMs, () => late('write'));
  }

  async #attempt<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task();
    } catch (error) {
      if (error instanceof OAuthAppError) throw error;
      throw new TokenStoreError('The token store failed. No grant was given up; the next request asks it again.', {
        cause: safeCause(error),
      });
    }
  }

  #seen(id: string, grant: Grant): void {
    this.#reads.delete(id);
    this.#options.cache?.set(id, grant, this.#options.clock());
  }

  #forget(id: string): void {
    this.#reads.delete(id);
    this.#options.cache?.delete(id);
  }
}

function late(what: string): TokenStoreError {
  return new TokenStoreError(
    `The token store did not answer in time (${what}). No grant was given up; the next request asks it again.`,
    {
      code: 'ERR_TOKEN_STORE_TIMEOUT',
    },
  );
}

function nothing(): void {}
