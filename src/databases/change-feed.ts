import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import { pause, withTimeout } from '../waiting.js';

/** A separate connection on which a store receives changes. */
export interface ChangeListener {
  /** Called with each message. */
  readonly tell: (message: string) => void;
  /** Called when the connection ends. */
  readonly lose: () => void;
  /** Aborts when the connection is to be closed, perhaps before it is open. */
  readonly signal: AbortSignal;
}

/**
 * Opens the connection. Resolves once it hears of every change from then on, to a function that asks the server for a sign of
 * life. Closes the connection when the signal aborts, also while it opens it.
 */
export type ListenForChanges = (listener: ChangeListener) => Promise<() => Promise<unknown>>;

/** How long the connection may take to open, and to answer, in milliseconds. */
const ANSWER_MS = 5_000;

/** Interval between two signs of life, in milliseconds: a connection that broke without a word is found out so. */
const ALIVE_MS = 10_000;

/** Pauses before the connection is opened again, in milliseconds: the bounds, and their growth. */
const REOPEN_PAUSE_MS = { first: 50, max: 5_000, growth: 2 } as const;

/** Returns the message for a change. @param version The version that is stored now if the grant was set or added. */
export function changeMessage(id: string, version?: number): string {
  return version === undefined ? id : `${id} ${version}`;
}

/** Returns the message for an update; `undefined` for a refresh, after which the former pair may go on being used. */
export function updateMessage(id: string, grant: StoredGrant, version: number): string | undefined {
  return grant.version === version ? changeMessage(id) : undefined;
}

/** Returns the method `watch` of a token store whose changes `listen` hears of. It opens the connection again when that ends. */
export function watchOver(listen: ListenForChanges): NonNullable<TokenStore['watch']> {
  return (changed) => {
    const stopping = new AbortController();
    const tell = (message: string): void => {
      const [id = '', version] = message.split(' ');
      if (!stopping.signal.aborted && id !== '') changed(id, version === undefined ? undefined : Number(version));
    };
    void keepListening(listen, tell, () => changed(''), stopping.signal);
    return () => stopping.abort();
  };
}

async function keepListening(
  listen: ListenForChanges,
  tell: (message: string) => void,
  isOpen: () => void,
  signal: AbortSignal,
): Promise<void> {
  let pauseMs: number = REOPEN_PAUSE_MS.first;
  while (!signal.aborted) {
    const connection = new AbortController();
    const lose = (): void => connection.abort(new Error('The connection closed'));
    const answered = <T>(answer: Promise<T>) =>
      withTimeout(answer, ANSWER_MS, () => new Error('There was no answer'), connection.signal);
    signal.addEventListener('abort', lose);
    try {
      const checkAlive = await answered(listen({ tell, lose, signal: connection.signal }));
      isOpen();
      pauseMs = REOPEN_PAUSE_MS.first;
      for (;;) {
        await pause(ALIVE_MS, { signal: connection.signal, unref: true });
        await answered(checkAlive());
      }
    } catch {
      // Until it is open again, what is cached counts for its time to live.
    } finally {
      signal.removeEventListener('abort', lose);
      lose();
    }
    await pause(pauseMs, { signal, unref: true }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * REOPEN_PAUSE_MS.growth, REOPEN_PAUSE_MS.max);
  }
}
