/** A request as it reached the service, with its secrets shortened. */
export interface SeenRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** The status, or why there was none. */
  readonly outcome: string;
  /** Its query, body or authorization, shortened. */
  readonly detail: string;
}

/** Something that happened to a grant. */
export interface Entry {
  /** Counts up. */
  readonly id: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly grantId: string;
  readonly kind: 'login' | 'refresh' | 'api' | 'grant-lost';
  readonly good: boolean;
  readonly title: string;
  readonly note: string;
  /** Whether the grant has a new token since. */
  readonly renewed: boolean;
  /** The process that it happened in. */
  readonly pid: number;
  /** What of it the service saw; nothing of a real one. */
  readonly requests: readonly SeenRequest[];
}

type Listener = (entry: Entry) => void;

interface Story {
  readonly entries: Entry[];
  readonly listeners: Set<Listener>;
  refreshes: number;
}

const most = { entries: 60, grants: 500 };

/** The latest that happened to each grant. Everybody reads of their own only. */
export class Journal {
  readonly #stories = new Map<string, Story>();

  /** Adds an entry and tells those who listen to its grant. */
  add(entry: Entry): void {
    const story = this.#story(entry.grantId);
    story.entries.push(entry);
    if (story.entries.length > most.entries) story.entries.shift();
    if (entry.renewed) story.refreshes += 1;
    for (const listener of story.listeners) listener(entry);
  }

  /** The entries of a grant after the one with the id `after`, the oldest first. */
  of(grantId: string, after = 0): readonly Entry[] {
    return (this.#stories.get(grantId)?.entries ?? []).filter((entry) => entry.id > after);
  }

  /** How often a grant was refreshed, by any process. */
  refreshes(grantId: string): number {
    return this.#stories.get(grantId)?.refreshes ?? 0;
  }

  /** Calls `listener` for each entry of a grant, until the function that it returns is called. */
  listen(grantId: string, listener: Listener): () => void {
    const { listeners } = this.#story(grantId);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  #story(grantId: string): Story {
    const known = this.#stories.get(grantId);
    if (known) return known;
    this.#forgetOldest();
    const story: Story = { entries: [], listeners: new Set(), refreshes: 0 };
    this.#stories.set(grantId, story);
    return story;
  }

  #forgetOldest(): void {
    if (this.#stories.size < most.grants) return;
    for (const [grantId, { listeners }] of this.#stories) {
      if (listeners.size === 0) return void this.#stories.delete(grantId);
    }
  }
}
