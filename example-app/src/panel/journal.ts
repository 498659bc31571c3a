import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import type { ApiEvent, GrantLostEvent, LoginEvent, RefreshEvent } from 'passport-oauth-app';
import type { LogEntry } from 'passport-oauth-app/emulator';

/** The request that led to an event. */
export interface Cause {
  readonly userId: string | undefined;
  /** The `state` parameter of a callback. */
  readonly state?: string | undefined;
  /** One of several calls that were made at once. Also sent to the service, as the header `X-Call`. */
  readonly call?: { readonly burst: string; readonly number: number } | undefined;
}

/** Holds the cause of what happens: `causes.run(cause, work)`. */
export const causes: AsyncLocalStorage<Cause> = new AsyncLocalStorage();

/** An event of the package, with the process that published it, the time in epoch milliseconds, and its cause. */
export type Happening = { readonly pid: number; readonly at: number; readonly cause: Cause | undefined } & (
  | { readonly kind: 'login'; readonly event: LoginEvent }
  | { readonly kind: 'refresh'; readonly event: RefreshEvent }
  | { readonly kind: 'api'; readonly event: ApiEvent }
  | { readonly kind: 'grant-lost'; readonly event: GrantLostEvent }
);

/** A request as it reached the service: its end in epoch milliseconds, and its fields with secrets shortened. */
export type SeenRequest = Omit<LogEntry, 'outcome'> & {
  /** The status, or why there was none. */
  readonly outcome: string;
  readonly at: number;
  readonly detail: string;
};

/** An event of one grant, with the requests that the service received for it; a real service tells of none. */
export type Entry = Happening & {
  readonly grantId: string;
  readonly requests: readonly SeenRequest[];
  /** The number of the access token that the grant has from this entry on; 1 for that of the login. */
  readonly token?: number;
};

const beginning = {
  /** The oldest first. */
  entries: [] as readonly Entry[],
  refreshes: 0,
  /** True once several calls were made at once. */
  burst: false,
  /** True once a refresh has succeeded after a failed one. */
  recovered: false,
};

/** The latest entries of one grant, and totals since its login, over all processes. */
export type Story = Readonly<typeof beginning>;

const maxEntries = 400;
const maxGrants = 500;

/** Subscribes to the package's diagnostics channels in this process. @returns Unsubscribes. */
export function hear(clock: () => number, tell: (happening: Happening) => void): () => void {
  const stops = ['login', 'refresh', 'api', 'grant-lost'].map((kind) => {
    // The name of a channel determines the type of its events; see docs/events.md.
    const listener = (event: unknown) =>
      tell({ kind, event, pid: process.pid, at: clock(), cause: causes.getStore() } as Happening);
    subscribe(`passport-oauth-app:${kind}`, listener);
    return () => unsubscribe(`passport-oauth-app:${kind}`, listener);
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** Keeps the stories of the grants. */
export class Journal {
  /** Emits the id of a grant that has a new entry. */
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #stories = new Map<string, Story>();

  add(entry: Entry): void {
    const { grantId } = entry;
    const { entries, refreshes: before, burst, recovered } = this.of(grantId);
    const isRefresh = entry.kind === 'refresh' && ['refreshed', 'unsaved'].includes(entry.event.outcome);
    const refreshes = before + (isRefresh ? 1 : 0);
    const added = isRefresh || entry.kind === 'login' ? { ...entry, token: refreshes + 1 } : entry;
    const hadFailed = entries.findLast(({ kind }) => kind === 'refresh')?.event.reason !== undefined;
    // Set again, so that the grants stand in the order of their latest entry.
    this.#stories.delete(grantId);
    this.#stories.set(grantId, {
      entries: [...entries.slice(1 - maxEntries), added],
      refreshes,
      burst: burst || entry.cause?.call !== undefined,
      recovered: recovered || (isRefresh && hadFailed),
    });
    const [oldest] = this.#stories.keys();
    if (this.#stories.size > maxGrants && oldest !== undefined) this.#stories.delete(oldest);
    this.#changes.emit(grantId);
  }

  /** Resolves when a grant has a new entry, or after some milliseconds. @returns Whether it has one. */
  async changes(grantId: string, ms: number): Promise<boolean> {
    const change = once(this.#changes, grantId, { signal: AbortSignal.timeout(ms) });
    return change.then(() => true).catch(() => false);
  }

  /** Returns the story of a grant. */
  of(grantId: string): Story {
    return this.#stories.get(grantId) ?? beginning;
  }
}

/** Returns when the work behind an entry began, in epoch milliseconds. */
export function startOf(entry: Entry): number {
  return entry.kind === 'grant-lost' ? entry.at : entry.at - entry.event.durationMs;
}
