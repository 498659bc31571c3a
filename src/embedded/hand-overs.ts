import { createHash, randomBytes, randomInt } from 'node:crypto';
import { CLOCK_SKEW_MS, remainingMs } from '../clock.js';
import type { GrantCodec } from '../grants/grant.js';
import type { StoreAccess } from '../stores/store-access.js';
import { HAND_OVER_PREFIX, type TokenStore } from '../stores/token-store.js';
import { KeyedQueue } from '../waiting.js';

/** The session that a popup has for its frame. */
export interface HandOver {
  /** What the session holds: JSON by name. */
  readonly content: Readonly<Record<string, unknown>>;
  /** `cookie.originalMaxAge`, where the application has set it. */
  readonly maxAge?: unknown;
}

/** What stands in the token store. */
interface StoredHandOver extends HandOver {
  readonly strategy: string;
  readonly callbackURL: string;
  /** S256 of the frame's verifier (RFC 7636, 4.2). */
  readonly challenge: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** What sessions are handed over with. */
export interface HandOversOptions {
  readonly strategy: string;
  readonly callbackURL: string;
  readonly codec: GrantCodec;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** How long a code works, in milliseconds. */
export const CODE_LIFETIME_MS: number = 60 * 1000;

/** Largest session that is handed over, in bytes. */
const MAX_SESSION_BYTES = 1024 * 1024;

/** How long the token store may take for one operation, in milliseconds. */
const HAND_OVER_LIMIT_MS = 5_000;

/**
 * Sessions on their way from a popup to its frame. Each stays in the token store; what travels is a random code that names it.
 *
 * Each is taken once: under the lock of the token store, or once in each process where that has no locks.
 */
export class HandOvers {
  readonly #options: HandOversOptions;
  readonly #queue = new KeyedQueue();

  constructor(options: HandOversOptions) {
    this.#options = options;
  }

  /**
   * Stores a session for the frame of a challenge.
   *
   * @returns its code; `undefined` if the session is larger than 1 MB
   * @throws TokenStoreError if it cannot be stored; TypeError if the session is no JSON
   */
  async put(access: StoreAccess, challenge: string, session: HandOver): Promise<string | undefined> {
    if (Buffer.byteLength(JSON.stringify(session.content)) > MAX_SESSION_BYTES) return undefined;
    const { strategy, callbackURL, codec, clock } = this.#options;
    const code = randomBytes(32).toString('base64url');
    const id = idOf(code);
    const expiresAt = clock() + CODE_LIFETIME_MS;
    const record: StoredHandOver = { ...session, strategy, callbackURL, challenge, expiresAt };
    const sealed = await codec.seal(id, JSON.stringify(record));
    const version = randomInt(1, 2 ** 47);
    await callStore(access, (store) => store.set(id, { version, expiresAt, sealed }));
    return code;
  }

  /**
   * Takes the session of a code out of the store. A code that does not belong to the verifier, or is too old, is not used up.
   *
   * @param verifier `undefined` for the process that has put it there, which takes what no frame has taken.
   * @returns `undefined` if the code is refused
   * @throws TokenStoreError if the token store fails
   */
  async take(access: StoreAccess, code: string, verifier: string | undefined): Promise<HandOver | undefined> {
    if (!/^[\w-]{43}$/.test(code)) return undefined;
    const id = idOf(code);
    const find = async () => {
      const stored = await callStore(access, (store) => store.get(id));
      const found = stored && parse(await this.#options.codec.open(id, stored.sealed));
      return found && this.#isFor(found, verifier) ? found : undefined;
    };
    // Rubbish is not worth a lock.
    if (!(await find())) return undefined;
    return await this.#queue.run(id, async () => {
      const lock = await access.acquire(id);
      try {
        const found = await find();
        if (found) await callStore(access, (store) => store.delete(id));
        return found;
      } finally {
        await lock.release();
      }
    });
  }

  #isFor({ strategy, callbackURL, challenge, expiresAt }: StoredHandOver, verifier: string | undefined): boolean {
    const { clock, ...own } = this.#options;
    if (strategy !== own.strategy || callbackURL !== own.callbackURL) return false;
    if (verifier === undefined) return true;
    const isAlive = remainingMs(expiresAt, clock(), CODE_LIFETIME_MS + CLOCK_SKEW_MS) > 0;
    return isAlive && challenge === challengeOf(verifier);
  }
}

/** Returns the challenge of a verifier: S256 (RFC 7636, 4.2). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** Returns the id of what a code names. Whoever can read ids alone does not learn the code. */
function idOf(code: string): string {
  return `${HAND_OVER_PREFIX}${createHash('sha256').update(code).digest('base64url')}`;
}

function callStore<T>(access: StoreAccess, task: (store: TokenStore) => Promise<T>): Promise<T> {
  return access.use(task, 'login', HAND_OVER_LIMIT_MS);
}

function parse(text: string | undefined): StoredHandOver | undefined {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    // Damaged. An error of JSON.parse shows the text.
    return undefined;
  }
}
