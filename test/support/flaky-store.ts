import session from 'express-session';

type Method = 'get' | 'set' | 'destroy';

/** A session store that fails when it is told to. */
export class FlakyStore extends session.MemoryStore {
  readonly #rules: { readonly method: Method; readonly matches: (key: string, entry: unknown) => boolean }[] = [];
  #throws = false;
  /** Every write that came in, those that failed among them. */
  readonly writes: string[] = [];

  /** From now on the method fails, for the entries that match. */
  fail(method: Method, matches: (key: string, entry: unknown) => boolean = () => true): void {
    this.#rules.push({ method, matches });
  }

  /** From now on what fails throws, instead of calling back with an error. */
  throwInstead(): void {
    this.#throws = true;
  }

  /** From now on nothing fails. */
  recover(): void {
    this.#rules.length = 0;
  }

  override get(key: string, callback: (error: unknown, session?: session.SessionData | null) => void): void {
    if (!this.#fails('get', key, undefined, callback)) super.get(key, callback);
  }

  override set(key: string, entry: session.SessionData, callback: (error?: unknown) => void = () => {}): void {
    this.writes.push(key);
    if (!this.#fails('set', key, entry, callback)) super.set(key, entry, callback);
  }

  override destroy(key: string, callback: (error?: unknown) => void = () => {}): void {
    if (!this.#fails('destroy', key, undefined, callback)) super.destroy(key, callback);
  }

  #fails(method: Method, key: string, entry: unknown, callback: (error: unknown) => void): boolean {
    if (!this.#rules.some((rule) => rule.method === method && rule.matches(key, entry))) return false;
    if (this.#throws) throw new Error(`The store cannot ${method} now`);
    setImmediate(callback, new Error(`The store cannot ${method} now`));
    return true;
  }
}

/** Whether a key of a session store is a grant's. */
export function isGrantKey(key: string): boolean {
  return key.startsWith('oauth-app-grant.');
}
