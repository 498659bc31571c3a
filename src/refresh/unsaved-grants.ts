import { setTimeout as pause } from 'node:timers/promises';
import type { RefreshEvent } from '../events.js';
import type { Grant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';

interface Unsaved {
  readonly grant: Grant;
  /** What the store may hold of this grant's past: any of it may be replaced. */
  readonly versions: readonly number[];
  /** What had asked for the refresh. */
  readonly trigger: RefreshEvent['trigger'];
  tries: number;
  timer: NodeJS.Timeout | undefined;
}

type OnSettled = (id: string, saved: boolean, trigger: RefreshEvent['trigger']) => void;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** How long `saveAll` goes on, and the pause between its tries. */
const SAVE_ALL_MS = 4_000;
const SAVE_ALL_PAUSE_MS = 200;
/** Past versions that are remembered, should a grant be refreshed again and again while the store is down. */
const MAX_VERSIONS = 8;

/**
 * Rotated grants that the store could not take: used from memory, and saved when the store is back.
 *
 * The service has buried the pair that the store still has, so these are the only living ones: the sooner they are
 * saved, the fewer other processes try the dead one.
 */
export class UnsavedGrants {
  readonly #repository: GrantRepository;
  readonly #onSettled: OnSettled;
  readonly #entries = new Map<string, Unsaved>();
  #flushing: Promise<void> | undefined;

  /** @param onSettled Called when the store has taken a grant, or has turned out to have another one or none. */
  constructor(repository: GrantRepository, onSettled: OnSettled) {
    this.#repository = repository;
    this.#onSettled = onSettled;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): Grant | undefined {
    return this.#entries.get(id)?.grant;
  }

  /** The versions that a save of the grant after `grant` may replace. */
  versionsBefore(id: string, grant: Grant): readonly number[] {
    return [...(this.#entries.get(id)?.versions ?? []), grant.version].slice(-MAX_VERSIONS);
  }

  /** Keeps the grant, and tries again and again to save it. */
  keep(id: string, grant: Grant, versions: readonly number[], trigger: RefreshEvent['trigger']): void {
    this.drop(id);
    const entry: Unsaved = { grant, versions, trigger, tries: 0, timer: undefined };
    this.#entries.set(id, entry);
    this.#schedule(id, entry);
  }

  /** Gives the grant up: it was saved, replaced by a login, or deleted. */
  drop(id: string): void {
    clearTimeout(this.#entries.get(id)?.timer);
    this.#entries.delete(id);
  }

  /** Tries once more, for all. Calls at once are one. */
  flush(): Promise<void> {
    this.#flushing ??= Promise.all([...this.#entries].map(([id, entry]) => this.#save(id, entry))).then(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Tries until all are saved, for some seconds. */
  async saveAll(): Promise<void> {
    const until = performance.now() + SAVE_ALL_MS;
    await this.flush();
    if (this.#entries.size > 0) this.#repository.loseWrites();
    while (this.#entries.size > 0 && performance.now() < until) {
      await pause(SAVE_ALL_PAUSE_MS);
      await this.flush();
    }
  }

  #schedule(id: string, entry: Unsaved): void {
    const delay = Math.min(FIRST_RETRY_MS * 2 ** entry.tries, MAX_RETRY_MS);
    entry.tries += 1;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => void this.#save(id, entry), delay);
    // `close` saves what is left; a timer must not keep a process alive.
    entry.timer.unref();
  }

  async #save(id: string, entry: Unsaved): Promise<void> {
    const saved = await this.#repository.replace(id, entry.grant, entry.versions).catch(() => undefined);
    if (this.#entries.get(id) !== entry) return;
    if (saved === undefined) return this.#schedule(id, entry);
    this.drop(id);
    this.#onSettled(id, saved, entry.trigger);
  }
}
