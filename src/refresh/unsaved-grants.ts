import { setTimeout as pause } from 'node:timers/promises';
import type { Grant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { RefreshTrigger } from './refresh-request.js';

/** A refreshed grant that is not in the store yet. */
interface UnsavedGrant {
  readonly grant: Grant;
  /** The version that the store had before the first failed save, and the version of the last refreshed grant: either may be replaced. */
  readonly versions: readonly number[];
  readonly trigger: RefreshTrigger;
}

type OnSettled = (id: string, saved: boolean, trigger: RefreshTrigger) => void;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** How long `saveAll` tries, and the pause between its tries. */
const SAVE_ALL_MS = 4_000;
const SAVE_ALL_PAUSE_MS = 200;

/**
 * Keeps refreshed grants that the store could not save: they are used from memory, and saved once the store works again.
 *
 * The pair in the store is already invalid at the service; these are the only valid ones.
 */
export class UnsavedGrants {
  readonly #repository: GrantRepository;
  readonly #onSettled: OnSettled;
  readonly #unsaved = new Map<string, UnsavedGrant>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #flushing: Promise<void> | undefined;

  /** @param onSettled Called when the store has saved a grant, or turns out to have another one, or none. */
  constructor(repository: GrantRepository, onSettled: OnSettled) {
    this.#repository = repository;
    this.#onSettled = onSettled;
  }

  get(id: string): Grant | undefined {
    return this.#unsaved.get(id)?.grant;
  }

  /** Returns the versions that the grant after `grant` may replace in the store. */
  replaceableVersions(id: string, grant: Grant): readonly number[] {
    const [first = grant.version] = this.#unsaved.get(id)?.versions ?? [];
    return [...new Set([first, grant.version])];
  }

  /** Keeps the grant, and retries to save it with an exponential backoff. */
  keep(id: string, grant: Grant, versions: readonly number[], trigger: RefreshTrigger): void {
    this.drop(id);
    const unsaved = { grant, versions, trigger };
    this.#unsaved.set(id, unsaved);
    this.#retryAfter(FIRST_RETRY_MS, id, unsaved);
  }

  /** Forgets the grant: it was saved, replaced by a login, or deleted. */
  drop(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#unsaved.delete(id);
  }

  /** Tries to save all grants now. Concurrent calls share one try. */
  flush(): Promise<void> {
    this.#flushing ??= Promise.all([...this.#unsaved].map(([id, unsaved]) => this.#save(id, unsaved))).then(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Tries until all grants are saved, for some seconds. */
  async saveAll(): Promise<void> {
    const until = performance.now() + SAVE_ALL_MS;
    await this.flush();
    if (this.#unsaved.size > 0) this.#repository.abandonWrites();
    while (this.#unsaved.size > 0 && performance.now() < until) {
      await pause(SAVE_ALL_PAUSE_MS);
      await this.flush();
    }
  }

  #retryAfter(ms: number, id: string, unsaved: UnsavedGrant): void {
    const retry = async () => {
      if (!(await this.#save(id, unsaved))) this.#retryAfter(Math.min(2 * ms, MAX_RETRY_MS), id, unsaved);
    };
    // `saveAll` saves the rest when the strategy is closed; a timer must not keep the process alive.
    this.#timers.set(id, setTimeout(() => void retry(), ms).unref());
  }

  /** Returns true if there is nothing left to save. */
  async #save(id: string, unsaved: UnsavedGrant): Promise<boolean> {
    const saved = await this.#repository.replace(id, unsaved.grant, unsaved.versions).catch(() => undefined);
    if (this.#unsaved.get(id) !== unsaved) return true;
    if (saved === undefined) return false;
    this.drop(id);
    this.#onSettled(id, saved, unsaved.trigger);
    return true;
  }
}
