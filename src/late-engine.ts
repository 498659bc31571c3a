import type { Engine } from './engine.js';
import type { AnyVerify } from './login/verify.js';
import type { Settings } from './options.js';

/**
 * A strategy's engine, loaded with the first request or call that needs it.
 *
 * Nearly ninety files take longer to load than Passport and its strategies together. A process that starts, builds its routes
 * and listens need not wait for them; its first request does.
 */
export class LateEngine {
  readonly settings: Settings;
  readonly #verify: AnyVerify | undefined;
  #ready: Engine | undefined;
  #starting: Promise<Engine> | undefined;

  constructor(settings: Settings, verify: AnyVerify | undefined) {
    this.settings = settings;
    this.#verify = verify;
  }

  /** The engine, if it is loaded already. */
  get ready(): Engine | undefined {
    return this.#ready;
  }

  /** The engine, loaded now if it was not yet. Calls at once are one. */
  start(): Promise<Engine> {
    this.#starting ??= this.#load();
    return this.#starting;
  }

  /** Lets running refreshes and saves finish, and frees connections. What was never needed is not loaded for it. */
  async close(): Promise<void> {
    const engine = await this.#starting;
    await engine?.close();
  }

  async #load(): Promise<Engine> {
    const { Engine } = await import('./engine.js');
    this.#ready = new Engine(this.settings, this.#verify);
    return this.#ready;
  }
}
