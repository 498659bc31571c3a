import type { RefreshEvent } from '../events.js';
import type { Grant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { HeldLock } from '../stores/store-access.js';
import { pause } from '../waiting.js';

/** A refreshed grant that is not in the store yet. */
export interface UnsavedGrant {
  readonly grant: Grant;
  /** The version that the store had before the first save that failed; `undefined` if it had none. */
  readonly storedVersion: number | undefined;
  readonly trigger: RefreshEvent['trigger'];
  /** On the monotonic clock. */
  readonly since: number;
  /** The lock of the refresh, held for the save. */
  readonly lock: HeldLock;
  /** Ends the hold of the lock. */
  readonly release: () => void;
  /** Fires before the next try to save. */
  retry: NodeJS.Timeout;
}

/** Called when the store has saved a grant, or turns out to have another, or none. */
type OnSettled = (id: string, event: Pick<RefreshEvent, 'outcome' | 'trigger' | 'durationMs'>, grant: Grant) => void;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** How long `saveAll` tries, and the pause between its tries. */
const SAVE_ALL_MS = 4_000;
const SAVE_ALL_PAUSE_MS = 200;

/** Keeps refreshed grants that the store could not save, the only valid ones: they are used from memory, and saved later. */
export class UnsavedGrants {
  /** The grants that are still to be saved. */
  readonly byId: Map<string, UnsavedGrant>;
  readonly #repository: GrantRepository;
  readonly #onSettled: OnSettled;
  #flushing: Promise<void> | undefined;

  /** @param byId Empty; the repository reads it. */
  constructor(byId: Map<string, UnsavedGrant>, repository: GrantRepository, onSettled: OnSettled) {
    this.byId = byId;
    this.#repository = repository;
    this.#onSettled = onSettled;
  }

  /**
   * Keeps the grant, and retries to save it with exponential backoff. Holds the lock until it is saved or dropped, or several
   * saves have failed: another process would send the token that the service has just invalidated.
   */
  keep(
    id: string,
    grant: Grant,
    storedVersion: number | undefined,
    trigger: RefreshEvent['trigger'],
    lock: HeldLock,
  ): void {
    this.drop(id);
    let release = (): void => undefined;
    lock.holdUntil(
      new Promise<void>((resolve) => {
        // If the store accepts the release, it may accept the save too.
        const timer = setTimeout(() => void this.#save(id).then(resolve, resolve), lock.holdMs()).unref();
        release = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    );
    const retry = this.#retryAfter(FIRST_RETRY_MS, id);
    this.byId.set(id, { grant, storedVersion, trigger, since: performance.now(), lock, release, retry });
  }

  /** Forgets the grant: it was saved, replaced by a login, or deleted. */
  drop(id: string): void {
    const unsaved = this.byId.get(id);
    clearTimeout(unsaved?.retry);
    this.byId.delete(id);
    unsaved?.release();
  }

  /** Tries to save all grants now. Concurrent calls share one try. */
  flush(): Promise<void> {
    this.#flushing ??= Promise.all([...this.byId.keys()].map((id) => this.#save(id))).then(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Tries until all grants are saved, for some seconds. Then releases all locks. */
  async saveAll(): Promise<void> {
    const until = performance.now() + SAVE_ALL_MS;
    await this.flush();
    if (this.byId.size > 0) this.#repository.access.abandonWrites();
    while (this.byId.size > 0 && performance.now() < until) {
      await pause(SAVE_ALL_PAUSE_MS);
      await this.flush();
    }
    for (const { release } of this.byId.values()) release();
  }

  #retryAfter(ms: number, id: string): NodeJS.Timeout {
    const retry = async () => {
      const unsaved = this.byId.get(id);
      await this.#save(id);
      if (unsaved && this.byId.get(id) === unsaved)
        unsaved.retry = this.#retryAfter(Math.min(2 * ms, MAX_RETRY_MS), id);
    };
    // `saveAll` saves the rest when the strategy is closed; a timer must not keep the process alive.
    return setTimeout(() => void retry(), ms).unref();
  }

  async #save(id: string): Promise<void> {
    const unsaved = this.byId.get(id);
    if (!unsaved) return;
    const { grant, storedVersion, trigger, since } = unsaved;
    const saved = await this.#repository.replace(id, grant, storedVersion).catch(() => undefined);
    if (saved === undefined || this.byId.get(id)?.grant !== grant) return;
    this.drop(id);
    const durationMs = performance.now() - since;
    this.#onSettled(id, { outcome: saved ? 'saved' : 'discarded', trigger, durationMs }, grant);
  }
}
