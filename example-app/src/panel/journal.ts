import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { ApiEvent, GrantLostEvent, LoginEvent, RefreshEvent } from 'passport-oauth-app';

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
export interface SeenRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** The status, or why there was none. */
  readonly outcome: string;
  readonly at: number;
  readonly durationMs: number;
  readonly detail: string;
}

/** An event of one grant, with the requests that the service received for it; a real service tells of none. */
export type Entry = Happening & { readonly grantId: string; readonly requests: readonly SeenRequest[] };

/** The entries of one grant, the oldest first, and what they add up to since the login, by any process. */
export interface Story {
  readonly entries: readonly Entry[];
  readonly refreshes: number;
  /** True once a token has run down and was refreshed. */
  readonly ranDown: boolean;
  /** True once a refresh has succeeded after a failed one. */
  readonly recovered: boolean;
}

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

/** Keeps the latest entries of each grant. */
export class Journal {
  /** Emits each entry, under the id of its grant. */
  readonly added: EventEmitter = new EventEmitter().setMaxListeners(0);
  readonly #stories = new Map<string, Story>();

  add(entry: Entry): void {
    const { entries, refreshes, ranDown, recovered } = this.of(entry.grantId);
    const renewed = entry.kind === 'refresh' && bringsToken(entry);
    const hadFailed = entries.findLast(({ kind }) => kind === 'refresh')?.event.reason !== undefined;
    // Set again, so that the grants stand in the order of their latest entry.
    this.#stories.delete(entry.grantId);
    this.#stories.set(entry.grantId, {
      entries: [...entries.slice(1 - maxEntries), entry],
      refreshes: refreshes + (renewed ? 1 : 0),
      ranDown: ranDown || (renewed && entry.event.trigger !== 'refused'),
      recovered: recovered || (renewed && hadFailed),
    });
    const [oldest] = this.#stories.keys();
    if (this.#stories.size > maxGrants && oldest !== undefined) this.#stories.delete(oldest);
    this.added.emit(entry.grantId, entry);
  }

  /** Returns the story of a grant. */
  of(grantId: string): Story {
    return this.#stories.get(grantId) ?? { entries: [], refreshes: 0, ranDown: false, recovered: false };
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
