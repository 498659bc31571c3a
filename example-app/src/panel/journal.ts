import type { Happening } from './happening.js';

/** A request as it reached the service, with its secrets shortened. */
export interface SeenRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** The status, or why there was none. */
  readonly outcome: string;
  /** The end of the request, in epoch milliseconds. */
  readonly at: number;
  readonly durationMs: number;
  /** Its query, body or authorization, shortened. */
  readonly detail: string;
}

/** An event of one grant. */
export type Entry = Happening & {
  /** Counts up. */
  readonly id: number;
  readonly grantId: string;
  /** The requests that the service received for it; empty for a real service. */
  readonly requests: readonly SeenRequest[];
};

/** The entries of one grant, the oldest first, and what they add up to since the login. */
export interface Story {
  readonly entries: readonly Entry[];
  /** How often the token was refreshed, by any process. */
  readonly refreshes: number;
  /** True once a token has run down and was refreshed. */
  readonly ranDown: boolean;
  /** True once a refresh has succeeded after a failed one. */
  readonly recovered: boolean;
}

type Listener = (entry: Entry) => void;

const emptyStory: Story = { entries: [], refreshes: 0, ranDown: false, recovered: false };
const maxEntries = 400;
const maxGrants = 500;

/** Keeps the latest entries of each grant. */
export class Journal {
  readonly #stories = new Map<string, Story>();
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Adds an entry and calls the listeners of its grant. */
  add(entry: Entry): void {
    const { grantId } = entry;
    const { entries, refreshes, ranDown, recovered } = this.of(grantId);
    const renewed = bringsToken(entry) && entry.kind === 'refresh';
    // Set again, so that the grants stand in the order of their latest entry.
    this.#stories.delete(grantId);
    this.#stories.set(grantId, {
      entries: [...entries.slice(1 - maxEntries), entry],
      refreshes: refreshes + (renewed ? 1 : 0),
      ranDown: ranDown || (renewed && entry.event.trigger !== 'refused'),
      recovered:
        recovered || (renewed && entries.findLast(({ kind }) => kind === 'refresh')?.event.reason !== undefined),
    });
    const [oldest] = this.#stories.keys();
    if (this.#stories.size > maxGrants && oldest !== undefined) this.#stories.delete(oldest);
    for (const listener of this.#listeners.get(grantId) ?? []) listener(entry);
  }

  /** Returns the story of a grant. */
  of(grantId: string): Story {
    return this.#stories.get(grantId) ?? emptyStory;
  }

  /** Calls `listener` for each entry of a grant. @returns Stops that. */
  listen(grantId: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(grantId) ?? new Set();
    this.#listeners.set(grantId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(grantId);
    };
  }
}

/** Returns whether the grant has a new token from this entry on. */
export function bringsToken({ kind, event }: Happening): boolean {
  return kind === 'login' || (kind === 'refresh' && (event.outcome === 'refreshed' || event.outcome === 'unsaved'));
}

/** Returns when the work behind an entry began, in epoch milliseconds. */
export function startOf(entry: Entry): number {
  return entry.kind === 'grant-lost' ? entry.at : entry.at - entry.event.durationMs;
}
